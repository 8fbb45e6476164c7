package move_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// refusal is a run that is refused for one reason, and written when its code is allowed.
type refusal struct {
	in      string
	run     func(t testing.TB, in string, options ...option) result
	code    string
	key     string   // of the first problem that refuses
	says    []string // in its reason
	also    []string // other codes that must be allowed too
	n       int      // number of problems that refuse; 0 for one
	skips   bool     // the allowed run skips a record
	created int      // records that an allowed run creates; 0 for any number
}

func extracting(x move.Extract) func(testing.TB, string, ...option) result {
	return func(t testing.TB, in string, options ...option) result { return extract(t, in, x, options...) }
}

func purging(p move.Purge) func(testing.TB, string, ...option) result {
	return func(t testing.TB, in string, options ...option) result { return purge(t, in, p, options...) }
}

func importing(from string, i move.Import) func(testing.TB, string, ...option) result {
	return func(t testing.TB, in string, options ...option) result { return importInto(t, from, in, i, options...) }
}

func puttingBack(from string) func(testing.TB, string, ...option) result {
	return func(t testing.TB, in string, options ...option) result {
		return putBack(t, from, in, move.PutBack{}, options...)
	}
}

// TestRefused checks that each code refuses by itself, with the key of a record, and is allowed by
// itself.
func TestRefused(t *testing.T) {
	for command, table := range map[string]func(t *testing.T) map[string]refusal{
		"extract": extractRefusals, "purge": purgeRefusals, "import": importRefusals,
		"import of definitions": definitionRefusals,
		"put back":              putBackRefusals,
	} {
		t.Run(command, func(t *testing.T) {
			for name, c := range table(t) {
				t.Run(name, func(t *testing.T) { c.check(t) })
			}
		})
	}
}

func (c refusal) check(t *testing.T) {
	r := c.run(t, c.in, allow(c.also...))
	r.refused(c.code)
	require.Nil(t, r.Manifest)
	var refused []finding.Finding
	for _, p := range r.Problems {
		if p.Outcome == finding.Refused {
			refused = append(refused, p)
			require.Equal(t, c.code, p.Code.Name, p.Reason)
		}
	}
	require.Len(t, refused, max(c.n, 1))
	require.Equal(t, c.key, refused[0].Key)
	for _, text := range c.says {
		require.Contains(t, refused[0].Reason, text)
	}
	done := c.run(t, c.in, allow(append(c.also, c.code)...)).written()
	if !c.skips {
		done.requireNoneSkipped()
	}
	if c.created > 0 {
		require.Equal(t, c.created, done.Changes.Created)
	}
	if done.Manifest != nil {
		require.Equal(t, done.Clusters, r.Clusters, "a refusal tells what would have been taken")
		require.Len(t, r.Steps, len(done.Steps))
	}
}

// Edits of a LogicalCluster: deletion in progress, live migration in progress, and the name of
// another logical cluster.
func terminating(name string) edit {
	return swap(home(name), `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-11-20T20:00:00Z",`)
}

func migrating(name string) edit {
	return swap(home(name), `"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:m",`)
}

func misnamed(name, as string) edit {
	return swap(home(name), `"kcp.io/cluster":"`+name, `"kcp.io/cluster":"`+as)
}

func extractRefusals(t *testing.T) map[string]refusal {
	x := extracting(move.Extract{Name: consumer})
	return map[string]refusal{
		"being deleted": {in: root(t, terminating(consumer)), run: x, code: "terminating", key: home(consumer)},
		"being moved":   {in: root(t, migrating(consumer)), run: x, code: "migrating", key: home(consumer)},
		"of another": {in: root(t, misnamed(consumer, other)), run: x, code: "key-mismatch",
			key: home(consumer)},
		"keys under a path": {in: underPath(t), run: extracting(move.Extract{Name: other}), code: "keys-under-path",
			key: poisoned, says: []string{otherPath}},
	}
}

func purgeRefusals(t *testing.T) map[string]refusal {
	const onRoot, onShard1, owner = `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`,
		`"cluster":"root","name":"other"`
	lc, workspace, led := home(other), kcptest.WorkspaceKey("other"), []string{"owner-points-here"}
	its, whole := purging(move.Purge{Name: other}), root(t)
	as := func(name string) func(testing.TB, string, ...option) result {
		return purging(move.Purge{Name: other, AsShard: name})
	}
	points := func(in string, run func(testing.TB, string, ...option) result) refusal {
		return refusal{in: in, run: run, code: "owner-points-here", key: workspace}
	}
	return map[string]refusal{
		"its Workspace says this shard": points(whole, its),
		"its Workspace says no shard": points(root(t,
			swap(workspace, onRoot, `"core.kcp.io/other":"root"`)), its),
		"this shard has another name": points(root(t, swap(workspace, onRoot, onShard1)),
			as("shard-1")),
		"its Workspace says what the file calls itself": points(whole, as("roott")),
		"it is its own owner": points(root(t,
			swap(lc, owner, `"cluster":"`+other+`","name":"other"`)), its),
		"its Workspace is not there": points(root(t,
			swap(lc, owner, `"cluster":"root","name":"x"`)), its),
		"being deleted": {in: root(t, terminating(other)), run: its,
			code: "terminating", key: lc, also: led},
		"being moved": {in: root(t, migrating(other)), run: its, code: "migrating",
			key: lc, also: led},
		"a value of another": {in: root(t, misnamed(other, consumer)), run: its,
			code: "key-mismatch", key: lc, also: led},
		"root": {in: whole, run: purging(move.Purge{Name: "root"}),
			code: "system-cluster", key: home("root")},
		"root's copies": {
			in: recorded(t, kcptest.Cache), run: purging(move.Purge{Name: "root", FromShard: "root"}),
			code: "system-cluster",
			also: []string{"exports-in-cache"},
		},
		"a part of kcp without a LogicalCluster": {in: whole, run: purging(move.Purge{Name: "system:bound-crds"}),
			code: "system-cluster"},
	}
}

func importRefusals(t *testing.T) map[string]refusal {
	from, here := archiveOf(t, root(t)), shard1(t)
	globes := root(t, drop(definitions+consumer+"/globes.crd.example.org"))
	version := func(root, shard, key, version string) refusal {
		run := importing(archiveOf(t, root), move.Import{})
		return refusal{in: shard, run: run, code: "unlisted-version", key: key, says: []string{"1 record of", version}}
	}
	return map[string]refusal{
		"being deleted": {
			in: here, run: importing(archiveOf(t, root(t, terminating(consumer)), allow("terminating")), move.Import{}),
			code: "terminating", key: home(consumer), says: []string{"2026-11-20T20:00:00Z"},
		},
		"root": {
			in: here, run: importing(extract(t, root(t), move.Extract{Name: "root"},
				allow("system-cluster")).written().out, move.Import{}),
			code: "system-cluster", key: home("root"),
		},
		"no definition of its own": {
			in: here, run: importing(archiveOf(t, globes), move.Import{}), code: "missing-definition",
			key: "/registry/crd.example.org/globes/customresources/" + consumer + "/world",
		},
		"a definition that nobody can decrypt": {
			in: here, run: importing(reforged(t, from, with(definitions+consumer+"/gizmos.crd.example.org", opaque)),
				move.Import{}),
			code: "missing-definition", key: itsGizmo,
			says: []string{"gizmos.crd.example.org", "as far as can be told"}, also: []string{"encrypted"},
			skips: true,
		},
		"an identity that nobody knows": {
			in: shard1(t, drop(bindings+consumer1+"/example.dev")), run: importing(from, move.Import{}),
			code: "unknown-identity",
			says: []string{kcptest.ExampleDev + ", of pods, sprockets.example.dev, widgets.example.dev,"},
		},
		"its own version": version(root(t, swap(itsGizmo, "crd.example.org/v2", "crd.example.org/v9")), here,
			itsGizmo, "v9"),
		"a bound version": version(root(t, swap(itsWidget, "example.dev/v1", "example.dev/v9")), here, itsWidget,
			"v9"),
		"kcp's own version": version(root(t), shard1(t, noV1alpha1), home(consumer), "v1alpha1"),
		"a type of kcp": {
			in: shard1(t, drop(systemDir+"apibindings.apis.kcp.io")), run: importing(from, move.Import{}),
			code: "unserved",
			key:  bindings + consumer + "/tenancy.kcp.io-2qp23", says: []string{"3 records of apibindings.apis.kcp.io"},
		},
	}
}

// noV1alpha1 gives the shard's kcp another version of LogicalClusters.
var noV1alpha1 = swap(systemDir+"logicalclusters.core.kcp.io", `"name":"v1alpha1"`, `"name":"v1"`,
	`"storedVersions":["v1alpha1"]`, `"storedVersions":["v1"]`, `"version":"v1alpha1"`, `"version":"v1"`)

// definitionRefusals checks that only definitions that a binding names, in kcp's form, are added to
// system:bound-crds; definitions of the shard stay.
func definitionRefusals(t *testing.T) map[string]refusal {
	from, lacks := archiveOf(t, root(t)), shard1(t, drop(widgetsDefinition))
	withoutIt := archiveOf(t, root(t, drop(widgetsDefinition)))
	binding, fits := bindings+consumer+"/example.dev", valueIn(t, from, widgetsDefinition)
	unwanted := with(binding, swapped(t, valueIn(t, from, binding), "af5b5003", "bf5b5003"))
	differs := func(shard, from string, says ...string) refusal {
		return refusal{in: shard, run: importing(from, move.Import{}), code: "definition-differs",
			key: widgetsDefinition, says: says, created: 36}
	}
	all := map[string]refusal{
		"another spec here": differs(shard1(t,
			swap(widgetsDefinition, `"singular":"widget"`, `"singular":"gadget"`)), from, "another spec"),
		"unreadable here": differs(shard1(t, put(widgetsDefinition, "{")), from, "cannot be read"),
		"unreadable here alone": differs(rebuilt(t, shard1(t), with(widgetsDefinition, "{"), nil, nil), withoutIt,
			"cannot be told"),
		"in no file": {
			in: lacks, run: importing(withoutIt, move.Import{}), code: "missing-definition", key: widgetsDefinition,
			says: []string{`APIBinding "example.dev"`},
		},
		"not wanted": {
			in: lacks, run: importing(reforged(t, from, unwanted), move.Import{}), code: "definition-differs",
			key:  widgetsDefinition,
			says: []string{"no APIBinding of the archive"}, also: []string{"missing-definition"}, created: 36,
		},
	}
	for name, c := range map[string]struct{ value, reason string }{
		"no definition": {`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`, "cannot be read"},
		"garbage":       {"\x00\x01", "cannot be read"},
		"encrypted":     {opaque, "cannot be told"},
		"another's name": {swapped(t, fits, `"metadata":{"name":"af5b5003`, `"metadata":{"name":"bf5b5003`),
			"its name"},
		"a tenant's": {swapped(t, fits, `"apis.kcp.io/bound-crd":"",`, ""), "apis.kcp.io/bound-crd"},
		"another type": {strings.ReplaceAll(fits, `"plural":"widgets"`, `"plural":"gadgets"`),
			"it defines gadgets.example.dev"},
		"another group": {swapped(t, fits, `"group":"example.dev"`, `"group":"example.org"`),
			"it defines widgets.example.org"},
	} {
		all[name] = refusal{
			in: lacks, run: importing(reforged(t, from, with(widgetsDefinition, c.value)), move.Import{}),
			code: "missing-definition",
			key:  widgetsDefinition, says: []string{c.reason}, also: []string{"encrypted"}, created: 36,
		}
	}
	return all
}

func putBackRefusals(t *testing.T) map[string]refusal {
	const pods, namespaces = boundDir + "f2a5dd18-487f-4b1f-9943-72fc51c30cb6", "/registry/core/namespaces/"
	rootDB, shard1DB := kcptest.LiveMigrated(t)
	odd := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"` + consumer + `"}}`
	const madeAnew = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"trap","namespace":"` + consumer +
		`"},"data":{"who":"anew"}}`
	lacks := edited(t, rootDB, drop(pods))
	require.Equal(t, 4, putBack(t, shard1DB, lacks, move.PutBack{}).written().Changes.Created,
		"a fit definition comes along")
	return map[string]refusal{
		"another value": {
			in: edited(t, rootDB, put(trap, madeAnew)), run: puttingBack(shard1DB),
			code: "key-exists", key: trap, skips: true, created: 2,
		},
		"no namespace": {
			in: edited(t, rootDB, drop(namespaces+other+"/"+consumer)), run: puttingBack(shard1DB),
			code: "namespace-missing", n: 3, key: trap,
		},
		"an unfit definition": {
			in: lacks, run: puttingBack(rebuilt(t, shard1DB, with(pods, "{"), nil, nil)), code: "missing-definition",
			key:  pods,
			says: []string{"cannot be read"}, created: 3,
		},
		"another's name": {
			in: rootDB, run: puttingBack(rebuilt(t, shard1DB, with(trap, odd), nil, nil)), code: "key-mismatch",
			key: trap, created: 3,
		},
	}
}

// TestUnreadable checks that an unreadable value that could refuse a purge refuses the purge, with
// its own code.
func TestUnreadable(t *testing.T) {
	consumers, withChildren := move.Purge{Name: consumer}, move.Purge{Name: consumer, WithChildren: true}
	childWorkspace := workspaceKey(consumer, "child")
	for name, c := range map[string]struct {
		spoiled []string
		purge   move.Purge
		at      string // the key that refuses; "" for none
		warns   string
	}{
		"the LogicalCluster": {[]string{home(other), kcptest.WorkspaceKey("other")}, move.Purge{Name: other},
			home(other), ""},
		"that of a child":            {[]string{home(child)}, withChildren, home(child), "children-stay"},
		"that of a child that stays": {[]string{home(child)}, consumers, "", "children-stay"},
		"a child and its Workspace":  {[]string{home(child), childWorkspace}, withChildren, childWorkspace, ""},
		"a Workspace of a child":     {[]string{childWorkspace}, withChildren, "", ""},
		"a Workspace that goes":      {[]string{home(child), childWorkspace}, consumers, "", "child-elsewhere"},
	} {
		for code, value := range map[string]string{"encrypted": opaque, "undecodable": "x"} {
			t.Run(name+"/"+code, func(t *testing.T) {
				edits := []edit{}
				for _, key := range c.spoiled {
					edits = append(edits, replace(key, value))
				}
				in := root(t, edits...)
				r := purge(t, in, c.purge, allow("owner-points-here"))
				if c.warns != "" {
					require.Contains(t, r.codes(), c.warns)
				}
				if c.at == "" {
					r.written()
					return
				}
				found := r.refused(code)
				require.Equal(t, []any{c.at, finding.Refused}, []any{found[0].Key, found[0].Outcome})
				purge(t, in, c.purge, allow("owner-points-here", code)).written().requireNoneSkipped()
			})
		}
	}
}

// TestUnreadableNeeds checks that an unreadable value among the needs of a logical cluster (its
// bindings and definitions) is refused, with no code to allow it.
func TestUnreadableNeeds(t *testing.T) {
	from, rootDB := archiveOf(t, root(t)), root(t)
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	binding := bindings + consumer + "/example.dev"
	for code, values := range map[string][]string{
		"encrypted": {opaque},
		"undecodable": {"{",
			`{"apiVersion":"core.kcp.io/v1alpha1","kind":"LogicalCluster","metadata":{"annotations":[]}}`,
			`{"kind":"Secret"}`},
	} {
		for _, value := range values {
			for _, key := range []string{home(consumer), binding} {
				extract(t, rebuilt(t, rootDB, with(key, value), nil, nil), move.Extract{Name: consumer},
					allowAll(move.ExtractSpec)).refused(code)
				bad := reforged(t, from, with(key, value))
				found := importInto(t, bad, shard1(t), move.Import{}, allowAll(move.ImportSpec),
					allow(code)).refused(code)
				require.Len(t, found, 1)
				require.Equal(t, []any{key, finding.Error, finding.Refused},
					[]any{found[0].Key, found[0].Level, found[0].Outcome})
			}
			spoiled := rebuilt(t, liveRoot, with(home(other), value), nil, nil)
			found := putBack(t, liveShard1, spoiled, move.PutBack{}, allowAll(move.ImportSpec)).refused(code)
			require.Equal(t, []any{home(other), finding.Refused}, []any{found[0].Key, found[0].Outcome})
		}
	}
	require.Equal(t, "undecodable", kcp.CodeUndecodable.Name)
}
