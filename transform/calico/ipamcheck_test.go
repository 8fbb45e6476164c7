package calico

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ipamObject makes a v3 IPAM record from a spec in a few words.
func ipamObject(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersionV3, "spec": spec}
}

// blockOf is a /29 whose addresses belong to the handles in order; "" is a free one.
func blockOf(cidr, affinity string, handles ...string) map[string]any {
	spec := map[string]any{"cidr": cidr, "affinity": affinity}
	var allocations, attributes []any
	for i := range 8 {
		if i >= len(handles) || handles[i] == "" {
			allocations = append(allocations, nil)
			continue
		}
		allocations = append(allocations, int64(len(attributes)))
		attributes = append(attributes, map[string]any{"handle_id": handles[i]})
	}
	spec["allocations"], spec["attributes"] = allocations, attributes
	return ipamObject(spec)
}

func handleOf(id string, counts map[string]any) map[string]any {
	return ipamObject(map[string]any{"handleID": id, "block": counts})
}

func affinityOf(node, cidr, state string) map[string]any {
	return ipamObject(map[string]any{"node": node, "cidr": cidr, "state": state, "type": "host"})
}

// ipamWarnings are the warnings that need no snapshot, as "key code", sorted.
func ipamWarnings(c *ipamCheck) []string {
	c.checkHoldings()
	c.checkAffinities()
	out := []string{}
	for _, w := range c.warnings {
		out = append(out, w.Key+" "+w.Code)
	}
	slices.Sort(out)
	return out
}

func TestIPAMCheckSound(t *testing.T) {
	c := newIPAMCheck()
	c.add("IPAMBlock", []byte("b1"), blockOf("10.0.0.0/29", "host:n1", "Net.Pod1", "net.pod2", "", "net.pod1", "windows-reserved-ipam-handle", "net.pod3\r\nMore"))
	c.add("IPAMBlock", []byte("b2"), blockOf("fd00::8/125", "virtual:load-balancer", "net.pod1"))
	c.add("IPAMHandle", []byte("h1"), handleOf("net.pod1", map[string]any{"10.0.0.0/29": int64(2), "fd00:0::8/125": int64(1)}))
	c.add("IPAMHandle", []byte("h2"), handleOf("net.pod2", map[string]any{"10.0.0.0/29": int64(1)}))
	c.add("IPAMHandle", []byte("h3"), handleOf("net.pod3", map[string]any{"10.0.0.0/29": int64(1)}))
	c.add("BlockAffinity", []byte("a1"), affinityOf("n1", "10.0.0.0/29", "confirmed"))
	c.add("BlockAffinity", []byte("a2"), ipamObject(map[string]any{"node": "load-balancer", "cidr": "fd00::8/125", "state": "confirmed", "type": "virtual"}))
	c.add("BlockAffinity", []byte("a3"), affinityOf("n1", "10.0.0.64/29", "pending")) // its block is about to be made
	require.Empty(t, ipamWarnings(c))
	require.Empty(t, c.held, "every address was accounted for")
}

func TestIPAMCheckFinds(t *testing.T) {
	gone := func(o map[string]any) map[string]any {
		o["spec"].(map[string]any)["deleted"] = true
		return o
	}
	for name, tc := range map[string]struct {
		add  func(c *ipamCheck)
		want []string
	}{
		"handle missing": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "", "x", "x", "y"))
		}, []string{"b ipam-handle-missing"}},
		"handle deleted": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "", "x"))
			c.add("IPAMHandle", []byte("h"), gone(handleOf("x", map[string]any{"10.0.0.0/29": int64(1)})))
		}, []string{"b ipam-handle-missing"}},
		"block deleted": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), gone(blockOf("10.0.0.0/29", "host:n", "x")))
			c.add("IPAMHandle", []byte("h"), handleOf("x", map[string]any{"10.0.0.0/29": int64(1)}))
		}, []string{"h ipam-block-missing"}},
		"handle without the block": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "", "x"))
			c.add("IPAMHandle", []byte("h"), handleOf("x", nil))
		}, []string{"b ipam-handle-missing"}},
		"counts differ": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "", "x", "x"))
			c.add("IPAMHandle", []byte("h"), handleOf("x", map[string]any{"10.0.0.0/29": int64(1)}))
		}, []string{"h ipam-handle-count"}},
		"handle holds nothing": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", ""))
			c.add("IPAMHandle", []byte("h"), handleOf("x", map[string]any{"10.0.0.0/29": int64(1)}))
		}, []string{"h ipam-handle-count"}},
		"block missing, twice": {func(c *ipamCheck) {
			c.add("IPAMHandle", []byte("h"), handleOf("x", map[string]any{"10.0.0.0/29": int64(1), "10.0.0.8/29": int64(1)}))
		}, []string{"h ipam-block-missing"}},
		"attribute missing": {func(c *ipamCheck) {
			b := blockOf("10.0.0.0/29", "", "x")
			b["spec"].(map[string]any)["attributes"] = []any{}
			c.add("IPAMBlock", []byte("b"), b)
		}, []string{"b ipam-block-bad"}},
		"size": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/28", ""))
		}, []string{"b ipam-block-bad"}},
		"affinity without a block": {func(c *ipamCheck) {
			c.add("BlockAffinity", []byte("a"), affinityOf("n", "10.0.0.0/29", "confirmed"))
		}, []string{"a ipam-block-missing"}},
		"two owners": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "host:n1"))
			c.add("BlockAffinity", []byte("a1"), affinityOf("n1", "10.0.0.0/29", "pendingDeletion"))
			c.add("BlockAffinity", []byte("a2"), affinityOf("n2", "10.0.0.0/29", "confirmed"))
		}, []string{"a2 ipam-affinity-mismatch"}},
		"no affinity": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "host:n1"))
		}, []string{"b ipam-affinity-mismatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIPAMCheck()
			tc.add(c)
			require.Equal(t, tc.want, ipamWarnings(c))
		})
	}
}

// TestIPAMCheckOdd: whatever shape a record has, it is counted or warned of, never a panic.
func TestIPAMCheckOdd(t *testing.T) {
	for _, spec := range []map[string]any{
		nil, {},
		{"cidr": "no cidr", "allocations": []any{int64(0)}, "attributes": []any{"no object"}},
		{"cidr": "10.0.0.0/29", "allocations": []any{"x", -1.5, int64(-1), int64(1 << 40), map[string]any{}}, "attributes": []any{nil}},
		{"cidr": int64(7), "allocations": "x", "block": map[string]any{"": "x", "10.0.0.0/29": nil}},
	} {
		c := newIPAMCheck()
		for _, kind := range []string{"IPAMBlock", "IPAMHandle", "BlockAffinity", "IPPool"} {
			c.add(kind, []byte(kind), ipamObject(spec))
			c.add(kind, []byte(kind), map[string]any{})
		}
		ipamWarnings(c)
	}
}

func TestIPAMCheckOneWarningAnObject(t *testing.T) {
	c := newIPAMCheck()
	counts := map[string]any{}
	for i := range 200 {
		cidr := fmt.Sprintf("10.0.%d.0/29", i)
		c.add("IPAMBlock", []byte(cidr), blockOf(cidr, "", "a", "b", "c", "d", "e"))
		counts[fmt.Sprintf("10.1.%d.0/29", i)] = int64(1)
	}
	c.add("IPAMHandle", []byte("h"), handleOf("z", counts))
	require.Len(t, ipamWarnings(c), 201)
	last := c.warnings[0]
	require.Equal(t, codeIPAMBlockMissing, last.Code)
	require.True(t, strings.HasSuffix(last.Reason, "and 197 more"), last.Reason)
}

func TestAddressIn(t *testing.T) {
	require.Equal(t, "10.0.1.4", addressIn("10.0.0.0/20", 260))
	require.Equal(t, "fd00::17f", addressIn("fd00::100/120", 127))
	require.Equal(t, "number 3", addressIn("x", 3))
}
