package calico

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/transform"
)

// ipamObject returns a v3 IPAM record with the given spec.
func ipamObject(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": apiVersionV3, "spec": spec}
}

// blockOf returns a /29 whose addresses belong to the handles in order; "" is a free address.
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
	return labelled(ipamObject(map[string]any{"node": node, "cidr": cidr, "state": state, "type": "host"}))
}

// labelled adds the labels of Calico's IPAM to an affinity.
func labelled(o map[string]any) map[string]any {
	labels := map[string]any{}
	for name, want := range affinityLabels(o["spec"].(map[string]any)) {
		labels[name] = want
	}
	o["metadata"] = map[string]any{"labels": labels}
	return o
}

// ipamWarnings returns the warnings that need no snapshot, as "key code", sorted.
func ipamWarnings(c *ipamCheck) []string {
	c.checkHoldings()
	c.checkAffinities()
	out := []string{}
	for _, w := range c.warnings {
		out = append(out, w.Key+" "+w.Code.Name)
	}
	slices.Sort(out)
	return out
}

func TestIPAMCheckSound(t *testing.T) {
	c := newIPAMCheck()
	c.add("IPAMBlock", []byte("b1"), blockOf("10.0.0.0/29", "host:n1", "Net.Pod1", "net.pod2", "", "net.pod1",
		"windows-reserved-ipam-handle", "net.pod3\r\nMore"))
	c.add("IPAMBlock", []byte("b2"), blockOf("fd00::8/125", "virtual:load-balancer", "net.pod1"))
	c.add("IPAMHandle", []byte("h1"), handleOf("net.pod1",
		map[string]any{"10.0.0.0/29": int64(2), "fd00:0::8/125": int64(1)}))
	c.add("IPAMHandle", []byte("h2"), handleOf("net.pod2", map[string]any{"10.0.0.0/29": int64(1)}))
	c.add("IPAMHandle", []byte("h3"), handleOf("net.pod3", map[string]any{"10.0.0.0/29": int64(1)}))
	c.add("BlockAffinity", []byte("a1"), affinityOf("n1", "10.0.0.0/29", "confirmed"))
	c.add("BlockAffinity", []byte("a2"), labelled(ipamObject(map[string]any{"node": "load-balancer",
		"cidr": "fd00::8/125", "state": "confirmed", "type": "virtual"})))
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
			c.add("IPAMHandle", []byte("h"), handleOf("x", map[string]any{"10.0.0.0/29": int64(1),
				"10.0.0.8/29": int64(1)}))
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
		"no labels": {func(c *ipamCheck) {
			c.add("IPAMBlock", []byte("b"), blockOf("10.0.0.0/29", "host:n1"))
			c.add("BlockAffinity", []byte("a"), ipamObject(map[string]any{"node": "n1", "cidr": "10.0.0.0/29",
				"state": "confirmed"}))
		}, []string{"a ipam-affinity-unlabelled"}},
		"no labels on what is deleted": {func(c *ipamCheck) {
			c.add("BlockAffinity", []byte("a"),
				gone(ipamObject(map[string]any{"node": "n1", "cidr": "10.0.0.0/29", "state": "confirmed"})))
		}, []string{}},
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

// TestIPAMCheckOdd: a record of any shape is counted or reported; nothing panics.
func TestIPAMCheckOdd(t *testing.T) {
	for _, spec := range []map[string]any{
		nil, {},
		{"cidr": "no cidr", "allocations": []any{int64(0)}, "attributes": []any{"no object"}},
		{"cidr": "10.0.0.0/29", "allocations": []any{"x", -1.5, int64(-1), int64(1 << 40), map[string]any{}},
			"attributes": []any{nil}},
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
	require.Equal(t, codeIPAMBlockMissing.Name, last.Code.Name)
	require.True(t, strings.HasSuffix(last.Reason, "and 197 more"), last.Reason)
}

func TestAddressIn(t *testing.T) {
	require.Equal(t, "10.0.1.4", addressIn("10.0.0.0/20", 260))
	require.Equal(t, "fd00::17f", addressIn("fd00::100/120", 127))
	require.Equal(t, "number 3", addressIn("x", 3))
}

// checkingIPAM checks the v3 records of a snapshot.
func checkingIPAM(ctx context.Context, v *transform.View) error {
	c := newIPAMCheck()
	for _, kd := range kinds() {
		for entry, err := range v.Live(ctx, registry.Dir(kd.v3())) {
			if err != nil {
				return err
			}
			obj, _, err := encoding.DecodeObject(entry.Value)
			if err != nil {
				return err
			}
			c.add(kd.Kind, entry.Key, obj)
		}
	}
	return c.report(storeOf(ctx, v))
}

// TestIPAMCheckRecorded: Calico's own IPAM filled the recorded cluster, so the check finds only
// manual additions.
func TestIPAMCheckRecorded(t *testing.T) {
	affinity := recordsV3 + "blockaffinities/node-b-192-168-77-0-26"
	byHand := "warning ipam-block-missing " + affinity
	r := planOn(t, recorded(t, "after.db"), planFunc(checkingIPAM))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning ipam-affinity-unlabelled " + affinity, byHand}, r.problems())
	require.Equal(t, "Calico does not select it among the blocks of host node-b: it lacks the labels "+
		"projectcalico.org/affinity-type=host, "+
		"projectcalico.org/hostname-hash=CMAXSCEQN2FQX6QTO46RNUSW2SYX5B4KAJRNYFFLLCEBP5WWXSDA, "+
		"projectcalico.org/ip-version=4",
		r.reason(t, codeIPAMAffinityUnlabelled.Name, affinity))
	require.Empty(t, r.changed())

	in := &input{t: t, from: recorded(t, "after.db")}
	in.del("/registry/minions/node-a")
	in.del("/registry/projectcalico.org/ipamhandles/vxlan-tunnel-addr-node-a")
	r = planOn(t, in.write(), planFunc(checkingIPAM))
	require.NoError(t, r.err)
	require.Equal(t, []string{
		"warning ipam-node-missing /registry/projectcalico.org/blockaffinities/node-a-192-168-174-128-26",
		"warning ipam-node-missing " +
			"/registry/projectcalico.org/blockaffinities/node-a-fd00-10-244-6d15-74ba-80e-4835-8080-122",
		"warning ipam-affinity-unlabelled " + affinity,
		byHand,
		"warning ipam-handle-missing /registry/projectcalico.org/ipamblocks/192-168-174-128-26",
		"warning ipam-node-missing /registry/projectcalico.org/ipamblocks/192-168-174-128-26",
		"warning ipam-node-missing /registry/projectcalico.org/ipamblocks/fd00-10-244-6d15-74ba-80e-4835-8080-122",
	}, r.problems())
	require.Equal(t, "handles of its addresses are not there or do not list the block (addresses: 1, the first is "+
		"192.168.174.130; handles: 1)",
		r.reason(t, codeIPAMHandleMissing.Name, "/registry/projectcalico.org/ipamblocks/192-168-174-128-26"))
}

// ipamKeys returns the warnings of the cross-check as "code key", in report order.
func (r result) ipamKeys() (out []string) {
	for _, p := range r.Problems {
		if strings.HasPrefix(p.Code.Name, "ipam-") {
			out = append(out, p.Code.Name+" "+p.Key)
		}
	}
	return out
}

// TestIPAMCheckSeesWhatStays: a skipped or conflicting record still holds its addresses: no new
// warnings appear.
func TestIPAMCheckSeesWhatStays(t *testing.T) {
	affinity := recordsV3 + "blockaffinities/node-b-192-168-77-0-26"
	before := []string{"ipam-affinity-unlabelled " + affinity, "ipam-block-missing " + affinity}
	spoil := func(key string) *input {
		in := newInput(t)
		in.edit(recordsV1+key, func(obj map[string]any) {
			set(obj, "metadata.labels",
				map[string]any{"a": "no value!"})
		})
		return in
	}
	live := func(change func(in *input)) *input {
		in := &input{t: t, from: recorded(t, "after.db")}
		if change != nil {
			change(in)
		}
		return in
	}
	for name, tc := range map[string]struct {
		in      *input
		options Options
		allow   []string
	}{
		"equal v3 objects, and conflicts refused": {in: live(nil)},
		"conflicts allowed":                       {in: live(nil), allow: []string{codeConflict.Name}},
		"conflicts, v3 stays":                     {in: live(nil), options: Options{Conflicts: KeepV3}},
		"conflicts, v1 is taken":                  {in: live(nil), options: Options{Conflicts: TakeV1}},
		"v3 objects without a v1 record": {in: live(
			func(in *input) { in.delPrefix(recordsV1 + "ipam"); in.delPrefix(recordsV1 + "blockaffinities") })},
		"a block refused": {in: spoil("ipamblocks/192-168-174-128-26")},
		"a block skipped": {in: spoil("ipamblocks/192-168-174-128-26"),
			allow: []string{codeInvalid.Name}},
		"a handle skipped": {in: spoil("ipamhandles/vxlan-tunnel-addr-node-a"),
			allow: []string{codeInvalid.Name}},
		"an affinity skipped": {in: spoil("blockaffinities/node-a-192-168-174-128-26"),
			allow: []string{codeInvalid.Name}},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOn(t, tc.in.write(), New(tc.options), tc.allow...)
			require.Equal(t, before, got.ipamKeys())
		})
	}
}

// TestIPAMCheckUnreadable: an undecryptable or undecodable record causes no warning about related
// records. One warning reports all such records.
func TestIPAMCheckUnreadable(t *testing.T) {
	affinity := recordsV3 + "blockaffinities/node-b-192-168-77-0-26"
	before := []string{"ipam-affinity-unlabelled " + affinity, "ipam-block-missing " + affinity}
	for name, tt := range map[string]struct {
		records []string // below the group
		spoil   func(in *input, key string)
		dir     string
	}{
		"an encrypted block": {records: []string{"ipamblocks/192-168-174-128-26"}, spoil: encrypted},
		"an encrypted block of IPv6": {records: []string{"ipamblocks/fd00-10-244-6d15-74ba-80e-4835-8080-122"},
			spoil: encrypted},
		"an undecodable block":   {records: []string{"ipamblocks/192-168-174-128-26"}, spoil: garbage},
		"a block without a CIDR": {records: []string{"ipamblocks/192-168-174-128-26"}, spoil: withoutCIDR},
		"a block without a spec": {records: []string{"ipamblocks/192-168-174-128-26"}, spoil: withoutSpec},
		"an encrypted handle":    {records: []string{"ipamhandles/vxlan-tunnel-addr-node-a"}, spoil: encrypted},
		"an undecodable handle":  {records: []string{"ipamhandles/vxlan-tunnel-addr-node-a"}, spoil: garbage},
		"an encrypted affinity": {records: []string{"blockaffinities/node-a-192-168-174-128-26"},
			spoil: encrypted},
		"one of each": {records: []string{"ipamblocks/192-168-66-0-26",
			"ipamhandles/vxlan-tunnel-addr-node-a", "blockaffinities/node-a-192-168-174-128-26"}, spoil: garbage},
		"a v3 block, with a v1 one": {records: []string{"ipamblocks/192-168-174-128-26"}, spoil: encrypted,
			dir: recordsV3},
		"a v3 handle, without v1 one": {records: []string{"ipamhandles/vxlan-tunnel-addr-node-a"}, spoil: onlyV3,
			dir: recordsV3},
	} {
		t.Run(name, func(t *testing.T) {
			in, dir := newInput(t), recordsV1
			if tt.dir != "" {
				in, dir = &input{t: t, from: recorded(t, "after.db")}, tt.dir
			}
			for _, key := range tt.records {
				tt.spoil(in, dir+key)
			}
			got := planOn(t, in.write(), New(Options{Conflicts: KeepV3}), finding.Encrypted.Name,
				finding.Undecodable.Name, codeInvalid.Name, codeConflict.Name)
			require.NoError(t, got.err, "%v", got.Problems)
			first := slices.Sorted(slices.Values(tt.records))[0]
			require.ElementsMatch(t, append(slices.Clone(before), "ipam-unchecked "+dir+first), got.ipamKeys())
			require.Contains(t, got.reason(t, codeIPAMUnchecked.Name, dir+first),
				fmt.Sprintf("%d of the IPAM records", len(tt.records)))
		})
	}
}

func encrypted(in *input, key string) { in.put(key, []byte("k8s:enc:aescbc:v1:k:00")) }
func garbage(in *input, key string)   { in.put(key, []byte("{")) }

func withoutCIDR(in *input, key string) {
	in.edit(key, func(obj map[string]any) { delete(obj["spec"].(map[string]any), "cidr") })
}

func withoutSpec(in *input, key string) { in.edit(key, func(obj map[string]any) { obj["spec"] = "x" }) }

func onlyV3(in *input, key string) {
	in.del(strings.Replace(key, recordsV3, recordsV1, 1))
	garbage(in, key)
}

func TestAffinityName(t *testing.T) {
	block, err := parseCIDR(map[string]any{"cidr": "10.0.0.64/26"})
	require.NoError(t, err)
	require.Equal(t, "n1-10-0-0-64-26", machines.AffinityName("n1", block))
	long := strings.Repeat("n", 253)
	for _, node := range []string{long[:239], long[:240], long} {
		name := machines.AffinityName(node, block)
		require.LessOrEqual(t, len(name), 252)
		require.Equal(t, len(node) > 239, len(name) == 252 && strings.Contains(name, "-10-0-0-64-26-"), name)
	}
}

func TestCIDROfName(t *testing.T) {
	for name, want := range map[string]string{
		"10-0-0-0-26": "10.0.0.0/26", "fd00-10---122": "fd00:10::/122", "---0": "::/0",
		"fd00-10-244-6d15-74ba-80e-4835-8080-122": "fd00:10:244:6d15:74ba:80e:4835:8080/122",
		"x": "", "": "", "10-0-0-0": "", "10-0-0-0-33": "", "-": "",
	} {
		require.Equal(t, want, cidrOfName(name), name)
	}
}
