package calico

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/phrase"
)

// windowsReserved is the handle ID of addresses reserved for Windows nodes. It has no IPAMHandle.
const windowsReserved = "windows-reserved-ipam-handle"

// few is the number of names in a reason with a long list.
const few = 3

// ipamCheck compares the IPAM records: addresses with handles, blocks with affinities, both with
// nodes. Contradictions existed before the migration and become warnings, one per object and code,
// ordered by key.
//
// ipamCheck keeps one entry per block and affinity, and a count for each unaccounted pair of handle
// and block (24 bytes; handles are hashed). Blocks must be added before handles.
type ipamCheck struct {
	blocks     []ipamBlock
	byCIDR     map[string]int // index in blocks
	affinities []ipamAffinity
	held       map[holding]addresses
	unread     ipamUnread
	warnings   []*finding.Finding
}

type ipamBlock struct {
	key, cidr, affinity string // affinity is "host:NAME", "virtual:NAME" or ""
}

type ipamAffinity struct {
	key, cidr, owner string // owner has the form of a block's affinity
	confirmed        bool
}

// holding is a handle's share of a block.
type holding struct {
	handle uint64 // hash of its ID
	block  int32  // index in blocks
}

type addresses struct {
	count int32
	first int32 // lowest ordinal in the block
}

func newIPAMCheck() *ipamCheck {
	unread := ipamUnread{blocks: map[string]bool{}, handles: map[uint64]bool{}, affinities: map[string]bool{}}
	return &ipamCheck{byCIDR: map[string]int{}, held: map[holding]addresses{}, unread: unread}
}

// inIPAMCheck reports whether a kind is one of the three compared kinds.
func inIPAMCheck(kind string) bool {
	return kind == "IPAMBlock" || kind == "IPAMHandle" || kind == "BlockAffinity"
}

// add adds a v3 record of one of the three kinds, nil for an unreadable record; other kinds are
// ignored. Only short strings are kept.
func (c *ipamCheck) add(kind string, key []byte, obj map[string]any) {
	if !inIPAMCheck(kind) {
		return
	}
	spec, _ := obj["spec"].(map[string]any)
	if deleted, _ := spec["deleted"].(bool); deleted {
		return // IPAM ignores it
	}
	if !readable(kind, spec) {
		c.unread.add(kind, string(key))
		return
	}
	switch kind {
	case "IPAMBlock":
		c.addBlock(string(key), spec)
	case "IPAMHandle":
		c.addHandle(string(key), spec)
	case "BlockAffinity":
		c.addAffinity(string(key), spec)
		if obj["apiVersion"] == apiVersionV3 { // a skipped v1 record may have its labels in the annotation
			c.checkLabels(string(key), spec, objectAt(objectAt(obj, "metadata"), "labels"))
		}
	}
}

func (c *ipamCheck) addBlock(key string, spec map[string]any) {
	cidr := canonicalCIDR(text(spec, "cidr"))
	index := len(c.blocks)
	c.blocks = append(c.blocks, ipamBlock{key: key, cidr: cidr, affinity: text(spec, "affinity")})
	c.byCIDR[cidr] = index

	allocations, _ := spec["allocations"].([]any)
	attributes, _ := spec["attributes"].([]any)
	bad := 0
	for ordinal, a := range allocations {
		if a == nil {
			continue
		}
		at, ok := wholeNumber(a)
		if !ok || at < 0 || at >= int64(len(attributes)) {
			bad++
			continue
		}
		attribute, _ := attributes[at].(map[string]any)
		c.hold(text(attribute, "handle_id"), index, ordinal)
	}
	if bad > 0 {
		c.warn(key, codeIPAMBlockBad, "%d of its addresses name an attribute that is not there", bad)
	}
	if want, ok := blockSize(cidr); ok && want != len(allocations) {
		c.warn(key, codeIPAMBlockBad, "addresses that it lists: %d; %s has %d", len(allocations), cidr, want)
	}
}

// hold records that an address of a block belongs to a handle. Addresses come in order.
func (c *ipamCheck) hold(id string, block, ordinal int) {
	id = canonicalHandle(id)
	if id == "" || id == windowsReserved {
		return
	}
	h := holding{handleHash(id), int32(block)}
	n, seen := c.held[h]
	if !seen {
		n.first = int32(ordinal)
	}
	n.count++
	c.held[h] = n
}

func (c *ipamCheck) addHandle(key string, spec map[string]any) {
	id := handleHash(canonicalHandle(text(spec, "handleID")))
	byBlock, _ := spec["block"].(map[string]any)
	var missing, differ []string
	for _, written := range slices.Sorted(maps.Keys(byBlock)) {
		cidr := canonicalCIDR(written)
		index, ok := c.byCIDR[cidr]
		if !ok {
			if !c.unread.block(cidr) {
				missing = append(missing, cidr)
			}
			continue
		}
		h := holding{id, int32(index)}
		count, _ := wholeNumber(byBlock[written])
		if has := int64(c.held[h].count); has != count {
			differ = append(differ, fmt.Sprintf("%s (%d here, %d in the block)", cidr, count, has))
		}
		delete(c.held, h)
	}
	if len(missing) > 0 {
		c.warn(key, codeIPAMBlockMissing, "no IPAMBlock for %s", phrase.List(missing, few))
	}
	if len(differ) > 0 {
		c.warn(key, codeIPAMHandleCount, "its addresses are counted otherwise in %s", phrase.List(differ, few))
	}
}

func (c *ipamCheck) addAffinity(key string, spec map[string]any) {
	c.affinities = append(c.affinities, ipamAffinity{
		key: key, cidr: canonicalCIDR(text(spec, "cidr")),
		owner:     affinityType(spec) + ":" + text(spec, "node"),
		confirmed: text(spec, "state") == "confirmed",
	})
}

// checkLabels reports an affinity without the labels of IPAM's selector: its node does not use the
// block for new pods.
func (c *ipamCheck) checkLabels(key string, spec, labels map[string]any) {
	var lacking []string
	want := affinityLabels(spec)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if labels[name] != want[name] {
			lacking = append(lacking, name+"="+want[name])
		}
	}
	if len(lacking) > 0 {
		c.warn(key, codeIPAMAffinityUnlabelled, "Calico does not select it among the blocks of %s %s: it lacks "+
			"the labels %s",
			affinityType(spec), text(spec, "node"), strings.Join(lacking, ", "))
	}
}

// reportIPAM runs the checks on the complete set of records, and reports the warnings.
func (c *ipamCheck) report(s *store) error {
	c.checkHoldings()
	c.checkAffinities()
	if err := c.checkNodes(s); err != nil {
		return err
	}
	if c.unread.count > 0 {
		c.warn(c.unread.first, codeIPAMUnchecked,
			"%d of the IPAM records, this one first, cannot be read: others are not compared with them", c.unread.count)
	}
	slices.SortFunc(c.warnings, func(a, b *finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Code.Name, b.Code.Name), cmp.Compare(a.Reason, b.Reason))
	})
	for _, w := range c.warnings {
		s.Raise(w.Key, w)
	}
	return nil
}

// checkHoldings reports blocks with addresses of no handle.
func (c *ipamCheck) checkHoldings() {
	type loss struct{ handles, addresses, first int32 }
	losses := map[int32]loss{}
	for h, n := range c.held {
		if c.unread.handles[h.handle] {
			continue
		}
		l, seen := losses[h.block]
		if !seen || n.first < l.first {
			l.first = n.first
		}
		l.handles++
		l.addresses += n.count
		losses[h.block] = l
	}
	for index, l := range losses {
		block := c.blocks[index]
		c.warn(block.key, codeIPAMHandleMissing,
			"handles of its addresses are not there or do not list the block (addresses: %d, the first is %s; "+
				"handles: %d)",
			l.addresses, addressIn(block.cidr, int(l.first)), l.handles)
	}
}

// checkAffinities compares blocks and affinities.
func (c *ipamCheck) checkAffinities() {
	claimed := map[string]bool{}
	for _, a := range c.affinities {
		claimed[a.cidr+" "+a.owner] = true
		if !a.confirmed {
			continue // the block is about to be made or freed
		}
		if index, ok := c.byCIDR[a.cidr]; !ok && !c.unread.block(a.cidr) {
			c.warn(a.key, codeIPAMBlockMissing, "no IPAMBlock for %s", a.cidr)
		} else if ok && c.blocks[index].affinity != a.owner {
			c.warn(a.key, codeIPAMAffinity, "it gives %s to %s, the block itself says %q", a.cidr, a.owner,
				c.blocks[index].affinity)
		}
	}
	for _, block := range c.blocks {
		if block.affinity != "" && !claimed[block.cidr+" "+block.affinity] &&
			!c.unread.affinity(block.affinity, block.cidr) {
			c.warn(block.key, codeIPAMAffinity, "it belongs to %s, which has no BlockAffinity for it", block.affinity)
		}
	}
}

// checkNodes reports blocks and affinities of nodes missing in the snapshot.
func (c *ipamCheck) checkNodes(s *store) error {
	owners := map[string]string{} // by key
	for _, a := range c.affinities {
		owners[a.key] = a.owner
	}
	for _, block := range c.blocks {
		owners[block.key] = block.affinity
	}
	there := map[string]bool{}
	for key, owner := range owners {
		node, isNode := strings.CutPrefix(owner, "host:")
		if !isNode {
			continue
		}
		if _, asked := there[node]; !asked {
			entry, err := s.get(append(s.keys.Dir(schema.GroupResource{Resource: "nodes"}), node...))
			if err != nil {
				return err
			}
			there[node] = entry != nil
		}
		if !there[node] {
			c.warn(key, codeIPAMNodeMissing, "it belongs to node %q, which is not in the snapshot", node)
		}
	}
	return nil
}

func (c *ipamCheck) warn(key string, code *finding.Code, format string, args ...any) {
	c.warnings = append(c.warnings, code.Because(format, args...).At(key))
}

// canonicalCIDR returns the canonical spelling of a CIDR; other text is returned unchanged.
func canonicalCIDR(s string) string {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked().String()
	}
	return s
}

// blockSize returns the number of addresses of a CIDR.
func blockSize(cidr string) (int, bool) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || p.Addr().BitLen()-p.Bits() > 16 {
		return 0, false
	}
	return 1 << (p.Addr().BitLen() - p.Bits()), true
}

// addressIn returns the address with that ordinal in a block.
func addressIn(cidr string, ordinal int) string {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fmt.Sprintf("number %d", ordinal)
	}
	at := p.Addr()
	for range ordinal {
		at = at.Next()
	}
	return at.String()
}

// canonicalHandle returns a handle ID as looked up by IPAM: in lower case, and cut at a carriage
// return, appended by an old release.
func canonicalHandle(id string) string {
	id, _, _ = strings.Cut(id, "\r")
	return strings.ToLower(id)
}

func handleHash(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// wholeNumber returns an integer of a decoded object.
func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// ipamUnread holds the unreadable IPAM records, by name. References to these records are neither
// right nor wrong.
type ipamUnread struct {
	count      int
	first      string          // lowest key
	blocks     map[string]bool // CIDRs
	nameless   bool            // a block's name is not a CIDR: it may be any block
	handles    map[uint64]bool // hashes of IDs
	affinities map[string]bool // names
}

// add adds a record of one of the three kinds. The names of blocks contain their CIDR, the names of
// handles their ID.
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

// block reports whether the block of that CIDR may be unreadable.
func (u *ipamUnread) block(cidr string) bool { return u.nameless || u.blocks[cidr] }

// affinity reports whether the affinity of owner, "host:NODE", for that CIDR is unreadable.
func (u *ipamUnread) affinity(owner, cidr string) bool {
	_, node, _ := strings.Cut(owner, ":")
	ipnet, err := parseCIDR(map[string]any{"cidr": cidr})
	return err == nil && u.affinities[machines.AffinityName(node, ipnet)]
}

// readable reports whether a record of one of the three kinds has the field used by references to
// it.
func readable(kind string, spec map[string]any) bool {
	if kind == "IPAMHandle" {
		return text(spec, "handleID") != ""
	}
	_, err := parseCIDR(spec)
	return err == nil
}
