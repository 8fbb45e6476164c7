package machines

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/base32"
	"encoding/hex"
	"net"
	"strings"
)

// HostnameHashLabel is the label of block affinities with [HostnameHash], since Calico 3.31.
const HostnameHashLabel = "projectcalico.org/hostname-hash"

// HostnameHash returns the base32 (no padding) SHA3-256 of a node's name: 52 characters, which fit
// a label.
func HostnameHash(node string) string {
	sum := sha3.Sum256([]byte(node))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// BlockName returns the object name of a block: 10-0-0-0-26 for 10.0.0.0/26.
func BlockName(block *net.IPNet) string {
	return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(block.String())
}

// AffinityName returns the object name of a node's affinity for a block. Calico cuts a long name
// and adds a hash.
func AffinityName(node string, block *net.IPNet) string {
	const most = 252 // bytes
	cidr := BlockName(block)
	if len(node)+1+len(cidr) <= most {
		return node + "-" + cidr
	}
	sum := sha256.Sum256([]byte(node + "+" + cidr))
	return node[:max(0, min(len(node), most-len(cidr)-13))] + "-" + cidr + "-" + hex.EncodeToString(sum[:])[:11]
}
