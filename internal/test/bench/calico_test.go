package bench

import (
	"crypto/sha3"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of the copied recorded records.
const (
	calicoRoot   = "/registry/crd.projectcalico.org/"
	recordedNode = "node-b"
	recordedCIDR = "192.168.218.64/26"
	recordedV6   = "fd00:10:244:da40:995e:89a6:1d37:a7c0/122"
	perBlock     = 64 // addresses
)

// calicoCopies copies recorded v1 records under other names.
type calicoCopies struct {
	testing.TB
	recorded map[string]string
	out      []pair
}

// manyCalico returns n v1 records: five in six are IPAMHandles, each with one address; the rest are
// the blocks of these addresses, the affinities of the blocks, an IPPool around the blocks, and
// policies.
func manyCalico(t testing.TB, recorded []pair, n int) []pair {
	t.Helper()
	c := &calicoCopies{TB: t, recorded: map[string]string{}}
	for _, p := range recorded {
		if key, found := strings.CutPrefix(string(p.key), calicoRoot); found {
			c.recorded[key] = string(p.value)
		}
	}
	handles := n * 5 / 6
	c.add("ippools/default-ipv4-ippool", nil, "default-ipv4-ippool", "bench", "192.168.0.0/16", "10.0.0.0/8")
	for first := 0; first < handles; first += perBlock {
		c.block(first, min(perBlock, handles-first))
	}
	for len(c.out) < n {
		c.add("networkpolicies/team-a/allow-web", nil, "allow-web", fmt.Sprintf("bench-%06d", len(c.out)))
	}
	return c.out
}

// add copies a record. The words are replaced in pairs, in key and value; then edit, unless nil,
// changes the value.
func (c *calicoCopies) add(key string, edit func(string) string, words ...string) {
	value, found := c.recorded[key]
	require.True(c, found, key)
	_, uid, found := strings.Cut(value, `"uid":"`)
	require.True(c, found, key)
	words = append(words, `"uid":"`+uid[:8], fmt.Sprintf(`"uid":"%08x`, len(c.out)))
	r := strings.NewReplacer(words...)
	key, value = r.Replace(key), r.Replace(value)
	if edit != nil {
		value = edit(value)
	}
	c.out = append(c.out, pair{[]byte(calicoRoot + key), []byte(value)})
}

// block adds a block of addresses, its affinity to a node, and a handle for each used address.
func (c *calicoCopies) block(first, used int) {
	node := fmt.Sprintf("bench-%05d", first/perBlock)
	cidr := fmt.Sprintf("10.%d.%d.%d/26", first>>16, first>>8&255, first&255)
	dashed := strings.NewReplacer(".", "-", "/", "-")
	words := []string{recordedCIDR, cidr, dashed.Replace(recordedCIDR), dashed.Replace(cidr), recordedNode, node,
		hostHash(recordedNode), hostHash(node)}
	c.add("ipamblocks/"+dashed.Replace(recordedCIDR),
		func(value string) string { return c.allocate(value, first, used) }, words...)
	c.add("blockaffinities/"+recordedNode+"-"+dashed.Replace(recordedCIDR), nil, words...)
	withoutV6 := []string{`,"` + recordedV6 + `":1`, "", `,"f:` + recordedV6 + `":{}`, ""}
	words = append(words, withoutV6...)
	recorded := "k8s-pod-network." + strings.Repeat("1b", 32)
	for i := range used {
		c.add("ipamhandles/"+recorded, nil, append(words[:len(words):len(words)], recorded, handleName(first+i))...)
	}
}

func handleName(i int) string { return fmt.Sprintf("k8s-pod-network.%064x", i) }

// hostHash returns the value of the label by which Calico finds the affinities of a node.
func hostHash(node string) string {
	hash := sha3.Sum256([]byte(node))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:])
}

// allocate assigns the first addresses of a block to the handles starting at first.
func (c *calicoCopies) allocate(block string, first, used int) string {
	lists := map[string][]any{"allocations": {}, "attributes": {}, "unallocated": {}}
	for i := range perBlock {
		if i >= used {
			lists["allocations"] = append(lists["allocations"], nil)
			lists["unallocated"] = append(lists["unallocated"], i)
			continue
		}
		lists["allocations"] = append(lists["allocations"], i)
		lists["attributes"] = append(lists["attributes"], map[string]any{"handle_id": handleName(first + i),
			"secondary": map[string]any{"namespace": "team-a", "pod": fmt.Sprintf("pod-%d", first+i)}})
	}
	for name, list := range lists {
		text, err := json.Marshal(list)
		require.NoError(c, err)
		block = regexp.MustCompile(`"`+name+`":\[[^\]]*\]`).ReplaceAllString(block, `"`+name+`":`+string(text))
	}
	return block
}
