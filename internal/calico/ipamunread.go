package calico

import (
	"path"
	"strings"

	"github.com/etcdshift/etcdshift/internal/ipam"
)

// ipamUnread are the IPAM records that cannot be read. References of other records to them are
// neither right nor wrong; the names of these records tell which those are.
type ipamUnread struct {
	count      int
	first      string          // lowest key
	blocks     map[string]bool // CIDRs
	nameless   bool            // a block's name spells no CIDR: it may be any
	handles    map[uint64]bool // hashes of ids
	affinities map[string]bool // names
}

// add adds a record of one of the three kinds. Blocks are named after their CIDR, handles after
// their id.
func (u *ipamUnread) add(kind, key string) {
	if u.count++; u.first == "" || key < u.first {
		u.first = key
	}
	name := path.Base(key)
	switch kind {
	case "IPAMBlock":
		cidr := cidrOfName(name)
		u.nameless = u.nameless || cidr == ""
		u.blocks[cidr] = true
	case "IPAMHandle":
		u.handles[handleHash(canonicalHandle(name))] = true
	case "BlockAffinity":
		u.affinities[name] = true
	}
}

// block says whether the block of that CIDR may be one of them.
func (u *ipamUnread) block(cidr string) bool { return u.nameless || u.blocks[cidr] }

// affinity says whether the affinity of owner, "host:NODE", for that CIDR is one of them.
func (u *ipamUnread) affinity(owner, cidr string) bool {
	_, node, _ := strings.Cut(owner, ":")
	ipnet, err := parseCIDR(map[string]any{"cidr": cidr})
	return err == nil && u.affinities[ipam.AffinityName(node, ipnet)]
}

// readable says whether a record of one of the three kinds has the name by which others refer to
// it.
func readable(kind string, spec map[string]any) bool {
	if kind == "IPAMHandle" {
		return text(spec, "handleID") != ""
	}
	_, err := parseCIDR(spec)
	return err == nil
}
