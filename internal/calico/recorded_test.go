package calico

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

const (
	recordsV1 = "/registry/crd.projectcalico.org/"
	recordsV3 = "/registry/projectcalico.org/"
)

// difference is an intended difference between our v3 records and those of the live controller. Key
// (below the group) and path are patterns of path.Match.
type difference struct {
	key, path string
	reason    string
}

// differences returns the intended differences. Each reason names the loss or the addition of the
// live controller.
func differences() []difference {
	const everywhere = "*"
	return []difference{
		{everywhere, "metadata.uid", "live: a new random UID. Ours: the one clients saw"},
		{everywhere, "metadata.creationTimestamp", "live: the time of the migration. Ours: that of the object"},
		{everywhere, "metadata.annotations.migration.projectcalico.org|migrated-by",
			"live: a mark that nothing ever removes"},
		{everywhere, "metadata.managedFields", "live: owned by kube-controllers. Ours: what v3 clients owned, " +
			"here nothing"},
		{everywhere, "metadata.annotations", "live: annotations that hold nothing but its mark"},
		{"clusterinformations|default", "metadata.generation",
			"live: created locked, then unlocked. Ours: created ready"},

		{"tiers|security", "status", "live: the create drops status"},
		{"ippools|default-ipv4-ippool", "status", "live: the create drops status"},
		{"kubecontrollersconfigurations|default", "status", "live: the create drops status"},
		{"caliconodestatuses|node-a-status", "status", "live: the create drops status"},
		{"ipamblocks|192-168-174-128-26", `spec.attributes\[*\].releasedAt`,
			"live: lost, addresses that cool down leak"},
		{"ipamblocks|fd00-10-244-6d15-74ba-80e-4835-8080-122", `spec.attributes\[*\].releasedAt`,
			"live: lost, addresses that cool down leak"},

		{"globalnetworkpolicies|legacy-gnp", `spec.ingress\[0\].source`,
			"live: its Go type drops the empty object, which means the same"},
		{"globalnetworkpolicies|legacy-gnp", `spec.ingress\[0\].destination`,
			"live: its Go type drops the empty object, which means the same"},
		{"felixconfigurations|node.node-b", "spec.bpfLogLevel",
			`live: its Go type adds "", which means the same as nothing`},

		{"networksets|team-a|ann-and-native-owner", "metadata.ownerReferences",
			"live: drops the owner that only the record itself has"},
		{"globalnetworksets|raw-no-annotation", `metadata.ownerReferences\[0\].apiVersion`,
			"live: dangles, it stays crd.projectcalico.org/v1"},
		{"globalnetworksets|raw-no-annotation", `metadata.ownerReferences\[0\].uid`,
			"live: dangles, it stays the v1 record's UID"},
		{"globalnetworkpolicies|security.block-bad", `metadata.ownerReferences\[0\].uid`,
			"the owner's UID, which is not the live one"},
		{"networkpolicies|team-a|owned-by-netset", `metadata.ownerReferences\[0\].uid`,
			"the owner's UID, which is not the live one"},
		{"networkpolicies|team-a|security.np", `metadata.ownerReferences\[1\].uid`,
			"the owner's UID, which is not the live one"},
		{"networksets|team-a|trusted", `metadata.ownerReferences\[0\].uid`,
			"the owner's UID, which is not the live one"},
		{"hostendpoints|both-labels", `metadata.ownerReferences\[0\].uid`,
			"the owner's UID, which is not the live one"},
	}
}

// TestRecorded migrates the recorded cluster and compares each of the 63 records with the live
// controller's result.
func TestRecorded(t *testing.T) {
	r := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, r.err, "%v", r.problems())
	live := contents(t, recorded(t, "after.db"))

	table := differences()
	used := make([]bool, len(table))
	compared := 0
	for key, theirs := range live {
		if !strings.HasPrefix(key, recordsV3) {
			continue
		}
		require.Contains(t, r.out, key)
		name := strings.ReplaceAll(strings.TrimPrefix(key, recordsV3), "/", "|")
		for _, at := range diffJSON(t, theirs, r.out[key]) {
			i := slices.IndexFunc(table, func(d difference) bool { return matches(d.key, name) && matches(d.path, at) })
			require.GreaterOrEqual(t, i, 0, "%s differs at %s, and no reason is known\nlive %s\nours %s", name, at,
				theirs, r.out[key])
			used[i] = true
		}
		compared++
	}
	require.Equal(t, 63, compared)
	ours := 0
	for key := range r.out {
		require.False(t, strings.HasPrefix(key, recordsV1), key)
		if strings.HasPrefix(key, recordsV3) {
			ours++
		}
	}
	require.Equal(t, 63, ours, "no record but those the live controller made")
	for i, d := range table {
		require.True(t, used[i], "no record differs at %s %s: %s", d.key, d.path, d.reason)
	}
}

func matches(pattern, s string) bool {
	ok, err := path.Match(pattern, strings.ReplaceAll(s, "/", "|"))
	return err == nil && ok
}

// diffJSON lists the differing paths of two objects.
func diffJSON(t testing.TB, a, b string) []string {
	t.Helper()
	var out []string
	x, y := exactJSON(t, a), exactJSON(t, b)
	diffValues("", x, y, &out)
	return out
}

// exactJSON keeps the spelling of numbers.
func exactJSON(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

func diffValues(at string, a, b any, out *[]string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			names := map[string]bool{}
			for name := range x {
				names[name] = true
			}
			for name := range y {
				names[name] = true
			}
			for name := range names {
				diffValues(strings.TrimPrefix(at+"."+name, "."), x[name], y[name], out)
			}
			return
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				diffValues(fmt.Sprintf("%s[%d]", at, i), x[i], y[i], out)
			}
			return
		}
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		*out = append(*out, at)
	}
}

// TestSeenUID: every v3 record has the UID seen by clients, so that no reference of
// projectcalico.org/v3 changes.
func TestSeenUID(t *testing.T) {
	r := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, r.err)
	require.Len(t, r.UIDs, 63)
	for _, u := range r.UIDs {
		seen, err := ConvertUID(u.Stored)
		require.NoError(t, err)
		require.Equal(t, seen, u.Seen)
		require.Equal(t, seen, u.Written)
	}
	for _, key := range []string{
		"/registry/configmaps/team-a/owned-by-gnp", "/registry/secrets/team-a/owned-by-ippool",
		"/registry/networkpolicies/team-b/owned-by-tier",
		"/registry/configmaps/team-a/owned-by-legacy-np", "/registry/example.com/widgets/team-a/owned-by-np",
	} {
		require.Equal(t, r.in[key], r.out[key], key)
	}
	require.Equal(t, []transform.Rename{
		{Kind: "GlobalNetworkPolicy", From: "default.legacy-gnp", To: "legacy-gnp"},
		{Kind: "NetworkPolicy", Namespace: "team-a", From: "default.legacy-np", To: "legacy-np"},
	}, r.Renamed)
}

// TestIdempotent: migrating an output again changes nothing, for any options of the first run. The
// cluster is the recorded one with the components of a manifest install.
func TestIdempotent(t *testing.T) {
	in := manifestInstall(t, cniTemplate).write()
	for _, o := range []Options{{}, {KeepV1: true}, {NewUIDs: true}, {KeepV1: true, NewUIDs: true}} {
		o.SetAPIGroup = true
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			dir := t.TempDir()
			first, second := filepath.Join(dir, "first.db"), filepath.Join(dir, "second.db")
			r, err := transform.Run(context.Background(), transform.Options{In: in, Out: first}, New(o))
			require.NoError(t, err)
			require.Equal(t, transform.Written, r.Outcome)
			r, err = transform.Run(context.Background(), transform.Options{In: first, Out: second},
				New(Options{KeepV1: o.KeepV1, SetAPIGroup: true}))
			require.NoError(t, err, "%+v", r.Problems)
			require.Equal(t, transform.Unchanged, r.Outcome)
			require.Zero(t, r.Changes)
			require.Empty(t, r.References)
			if !o.KeepV1 {
				require.Equal(t, codeNothingToMigrate.Name, r.Problems[0].Code.Name)
			}
			a, err := os.ReadFile(first)
			require.NoError(t, err)
			b, err := os.ReadFile(second)
			require.NoError(t, err)
			require.True(t, bytes.Equal(a, b))
		})
	}
}

// TestDeterministic: equal inputs and options give equal bytes.
func TestDeterministic(t *testing.T) {
	for _, o := range []Options{{}, {NewUIDs: true, KeepV1: true}} {
		in := recorded(t, "before.db")
		var runs [][]byte
		for i := range 2 {
			out := filepath.Join(t.TempDir(), fmt.Sprint(i))
			_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out}, New(o))
			require.NoError(t, err)
			b, err := os.ReadFile(out)
			require.NoError(t, err)
			runs = append(runs, b)
		}
		require.True(t, bytes.Equal(runs[0], runs[1]))
	}
}
