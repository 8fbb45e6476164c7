package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/transform"
)

// TestRepeat checks that a run canceled at any point leaves the input and no output; the next run
// equals an uninterrupted run, to the byte; a run over its output changes nothing.
func TestRepeat(t *testing.T) {
	c, _, _ := dirty(t)
	for i := range 3 * batchObjects {
		c.add(resource{version: "v1alpha1", name: fmt.Sprintf("w%d", i)})
	}
	path := c.build()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	whole := migrate(t, transform.Options{In: path}, Options{})
	for _, stage := range []string{"read", "plan", "write"} {
		ctx, cancel := context.WithCancel(context.Background())
		r := migrateContext(ctx, t, transform.Options{In: path, Progress: func(name string, _ func() float64) {
			if name == stage {
				cancel()
			}
		}}, Options{})
		require.ErrorIs(t, r.err, context.Canceled, stage)
		require.Equal(t, transform.Failed, r.Outcome)
		left, err := os.ReadDir(filepath.Dir(r.path))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	again := migrate(t, transform.Options{In: path}, Options{})
	require.Equal(t, whole.Output.SHA256, again.Output.SHA256)
	over := migrate(t, transform.Options{In: whole.path}, Options{})
	require.Equal(t, transform.Unchanged, over.Outcome)
	require.Equal(t, whole.Output.SHA256, over.Output.SHA256)
	require.Zero(t, over.Changes)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, slices.Equal(before, after), "the input changed")
}

// TestLeases checks that a rewritten value keeps its lease (changed compares leases).
func TestLeases(t *testing.T) {
	o := resource{version: "v1alpha1", name: "a"}
	r := newCluster(t, twoVersions()).leased(o.key(), o.json(t), 77).leased("/registry/events/ns/e",
		`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"ns"}}`, 78).migrate(Options{})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	require.EqualValues(t, 77, r.out[o.key()].lease)
}

// TestBatches checks exact counts for more objects than a batch holds.
func TestBatches(t *testing.T) {
	for _, n := range []int{batchObjects - 1, batchObjects, batchObjects + 1, 2*batchObjects + 7} {
		c := newCluster(t, twoVersions())
		for i := range n {
			c.add(resource{version: "v1alpha1", namespace: fmt.Sprintf("ns%d", i%3), name: fmt.Sprintf("w%d", i)})
		}
		r := c.add(resource{version: "v1", name: "current"}).migrate(Options{})
		require.Len(t, r.changed(), n+1)
		require.Equal(t, []int{n, 1, 0}, []int{r.resources(widgetsCRD).Rewritten, r.resources(widgetsCRD).Unchanged,
			r.resources(widgetsCRD).Refused})
		require.Equal(t, []string{"v1"}, r.storedVersions(widgetsKey))
	}
}

// TestPrefixes checks two API servers in one etcd, each with its own CustomResourceDefinitions; one
// prefix lies below the other.
func TestPrefixes(t *testing.T) {
	const inner = "/registry/tenants.io/one"
	moved := func(key string) string { return inner + strings.TrimPrefix(key, "/registry") }
	o, d := resource{version: "v1alpha1", name: "a"}, twoVersions()
	below := definition{versions: "v1alpha1* v1", stored: `["v1","v1alpha1"]`}
	orphan := resource{crd: "things.example.org", version: "v1", name: "t"}
	path := newCluster(t, d).add(o).put(moved(widgetsKey), below.json(t)).put(moved(o.key()),
		o.json(t)).put(moved(orphan.key()), orphan.json(t)).build()

	r := migrate(t, transform.Options{In: path}, Options{})
	require.Equal(t, []string{widgetsKey, o.key(), moved(widgetsKey)}, r.changed())
	require.Equal(t, []string{"v1alpha1"}, r.storedVersions(moved(widgetsKey)))
	require.Equal(t, []string{"warning orphan " + moved(orphan.key())}, r.problems(),
		"once, and not for what lies below")
	require.Len(t, r.CustomResources, 2)

	r = migrate(t, transform.Options{In: path, Prefixes: []string{"/registry"}}, Options{})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	r = migrate(t, transform.Options{In: path, Prefixes: []string{inner, inner}}, Options{})
	require.Equal(t, []string{moved(widgetsKey)}, r.changed())
	require.Len(t, r.CustomResources, 1)

	side := newCluster(t, d).add(o).put("/kubernetes.io"+strings.TrimPrefix(widgetsKey, "/registry"),
		below.json(t)).put("/kubernetes.io/example.com/widgets/ns/a", o.json(t)).migrate(Options{})
	require.Equal(t, []string{"/kubernetes.io" + strings.TrimPrefix(widgetsKey, "/registry"), widgetsKey, o.key()},
		side.changed())
	require.ErrorIs(t, migrate(t, transform.Options{In: path, Prefixes: []string{"/nowhere"}}, Options{}).err,
		transform.ErrEmptyPrefix)

	// the prefix of one is the root of the etcd
	root := func(key string) string { return strings.TrimPrefix(key, "/registry") }
	r = newCluster(t, d).add(o).put(root(widgetsKey), d.json(t)).put(root(o.key()), o.json(t)).
		put(root(orphan.key()), orphan.json(t)).migrate(Options{})
	require.ElementsMatch(t, []string{widgetsKey, o.key(), root(widgetsKey), root(o.key())}, r.changed())
	require.Equal(t, []string{"warning orphan " + root(orphan.key())}, r.problems())
}

// TestPrefixInFolder checks that a prefix inside the folder of a kind, or around its objects, hides
// no object.
func TestPrefixInFolder(t *testing.T) {
	o, fresh := resource{version: "v1alpha1", name: "a"}, resource{version: "v1", name: "b"}
	lost := resource{version: "v1old", name: "c"}
	for _, inner := range []string{"/registry/example.com", "/registry/example.com/widgets",
		"/registry/example.com/widgets/ns"} {
		both := []string{"/registry", inner}
		path := newCluster(t, twoVersions()).add(o, fresh).build()
		r := migrate(t, transform.Options{In: path, Prefixes: both}, Options{})
		require.Equal(t, []string{widgetsKey, o.key()}, r.changed(), inner)
		require.Equal(t, []string{"v1"}, r.storedVersions(widgetsKey), inner)
		require.Equal(t, map[string]int{"v1alpha1": 1, "v1": 1}, r.resources(widgetsCRD).Found, inner)

		path = newCluster(t, twoVersions()).add(o, fresh, lost).build()
		migrate(t, transform.Options{In: path, Prefixes: both},
			Options{}).refusedFor("error unlisted-version "+lost.key(), "warning stored-versions-kept "+widgetsKey)
		r = migrate(t, transform.Options{In: path, Prefixes: both, Allow: []string{codeUnlistedVersion.Name}},
			Options{})
		require.Equal(t, []string{"v1alpha1", "v1", "v1old"},
			append([]string{"v1alpha1"}, r.storedVersions(widgetsKey)...), inner)

		old, now := secrettest.Load(t, widgetsCRD+": aescbc=o"), secrettest.Load(t, widgetsCRD+": aescbc=no")
		path = newCluster(t, twoVersions()).put(fresh.key(),
			secrettest.Encrypt(t, old, widgetsCRD, fresh.key(), fresh.json(t))).build()
		r = migrate(t, transform.Options{In: path, Encryption: now, Prefixes: both}, Options{Rewrap: true})
		require.ErrorIs(t, r.err, transform.ErrRefused, inner)
		require.Contains(t, r.problems(), "error encrypted "+fresh.key(), inner)
	}
}

// TestOddKeys checks keys that no server writes, in the folders of the migration.
func TestOddKeys(t *testing.T) {
	o := resource{version: "v1alpha1", name: "a"}
	r := newCluster(t, twoVersions()).add(o).
		put(definitions+"deeper/still", twoVersions().json(t)).put(definitions+"others.example.com",
		twoVersions().json(t)).put(widgetsDir, o.json(t)).put(strings.TrimSuffix(widgetsDir, "/"), "{}").
		migrate(Options{}, finding.Allowable(codes())...)
	require.Contains(t, r.changed(), o.key())
	require.Equal(t, []string{"v1alpha1", "v1"}, r.storedVersions(widgetsKey))
	require.Subset(t, r.problems(), []string{"error unknown-key " + widgetsDir,
		"error unknown-key " + definitions + "deeper/still"})
	require.Equal(t, `it names itself "widgets.example.com", unlike its key`, r.reason(codeInvalid.Name))
	require.Len(t, r.CustomResources, 2)
}

// TestLarge checks that objects too large for any server are migrated, and reported if they grow
// beyond the limit of a server.
func TestLarge(t *testing.T) {
	d := twoVersions()
	d.schemas = map[string]string{"v1": typed(`"text":{"type":"string"},"since":{"type":"string","default":"` +
		strings.Repeat("d", 100) + `"}`)}
	fits := resource{version: "v1alpha1", name: "fits", spec: `{"text":"` + strings.Repeat("x", 1_572_864-230) + `"}`}
	huge := resource{version: "v1alpha1", name: "huge", spec: `{"text":"` + strings.Repeat("y", 10<<20) + `"}`}
	c := newCluster(t, d).add(fits)
	for i := range 4 {
		huge.name = fmt.Sprintf("huge%d", i)
		c.add(huge)
	}
	r := c.migrate(Options{})
	require.Len(t, r.changed(), 6)
	require.Len(t, r.Problems, 5)
	require.Contains(t, r.problems(), "warning large-value "+fits.key())
	require.Contains(t, r.out[huge.key()].value, strings.Repeat("y", 10<<20))
}

// TestManagedFields checks that entries that would fail server-side apply are relabeled and
// counted, or kept with the option; other entries stay.
func TestManagedFields(t *testing.T) {
	entry := func(manager, version string) string {
		return fmt.Sprintf(
			`{"apiVersion":"example.com/%s","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:text":{}}},"manager":%q,`+
				`"operation":"Apply","time":"2026-01-01T00:00:00Z"}`, version, manager)
	}
	object := func(name, version string, entries ...string) resource {
		return resource{version: version, name: name, late: `"managedFields":[` + strings.Join(entries, ",") + `],`}
	}
	old := object("old", "v1", entry("m", "v1alpha1"))
	both := object("both", "v1beta1", entry("m", "v1alpha1"), entry("n", "v1"))
	fresh := object("fresh", "v1", entry("m", "v1"))
	path := newCluster(t, definition{versions: "v1beta1- v1*", stored: `["v1beta1","v1"]`}).add(old,
		both, fresh).build()
	r := migrate(t, transform.Options{In: path}, Options{})
	require.Equal(t, []string{widgetsKey, both.key(), old.key()}, r.changed())
	require.Equal(t, object("old", "v1", entry("m", "v1")).json(t), r.out[old.key()].value)
	require.Equal(t, object("both", "v1", entry("m", "v1"), entry("n", "v1")).json(t), r.out[both.key()].value)
	require.Equal(t, 2, r.resources(widgetsCRD).ManagedFields)

	r = migrate(t, transform.Options{In: path}, Options{KeepManagedFields: true})
	require.Equal(t, []string{widgetsKey, both.key()}, r.changed())
	require.Equal(t, both.at("v1").json(t), r.out[both.key()].value)
	require.Zero(t, r.resources(widgetsCRD).ManagedFields)
}

// TestSteps checks that a version without stored objects is reported as removable, unless
// managedFields name the version: without the version server-side apply of these objects would
// fail.
func TestSteps(t *testing.T) {
	d := definition{versions: "v1alpha1 v1alpha2 v1*", stored: `["v0","v1alpha1","v1alpha2","v1"]`}
	o := resource{version: "v1alpha1", name: "a",
		late: `"managedFields":[{"apiVersion":"example.com/v1alpha1","fieldsType":"FieldsV1",` +
			`"fieldsV1":{"f:spec":{"f:text":{}}},"manager":"m","operation":"Apply"}],`}
	path := newCluster(t, d).add(o, resource{version: "v1alpha2", name: "b"}).build()
	r := migrate(t, transform.Options{In: path}, Options{})
	require.Equal(t, []string{"v1"}, r.storedVersions(widgetsKey))
	require.Equal(t, []string{"example.com/v1alpha1"}, r.entries(o.key()))
	require.Contains(t, r.Steps, "nothing is stored at v1alpha2 of widgets.example.com any more: it may be removed "+
		"from spec.versions")
	steps := strings.Join(r.Steps, "\n")
	require.Contains(t, steps, "nothing is stored at v1alpha1 of widgets.example.com any more, but managedFields of "+
		"1 of its objects name it: before it is removed from spec.versions, relabel them with --managed-fields all")
	require.NotContains(t, steps, "v0")

	all := migrate(t, transform.Options{In: path}, Options{AllManagedFields: true})
	require.Equal(t, []string{"example.com/v1"}, all.entries(o.key()))
	require.Equal(t, 1, all.resources(widgetsCRD).ManagedFields)
	require.Contains(t, strings.Join(all.Steps, "\n"),
		"nothing is stored at v1alpha1, v1alpha2 of widgets.example.com any more: it may be removed")

	back := migrate(t, transform.Options{In: path}, Options{To: "v1alpha1"})
	require.Contains(t, strings.Join(back.Steps, "\n"), "have it say v1alpha1 there too")

	// managedFields keep a version, even if storedVersions never named it
	o.version = "v1"
	short := newCluster(t, definition{versions: "v1alpha1 v1*"}).add(o).migrate(Options{})
	require.Equal(t, transform.Unchanged, short.Outcome)
	require.Contains(t, strings.Join(short.Steps, "\n"), "managedFields of 1 of its objects name it")

	// the last served version is never reported as removable
	d = definition{versions: "v1alpha1- v1*", stored: `["v1"]`}
	served := newCluster(t, d).add(resource{version: "v1", name: "a"}).migrate(Options{To: "v1alpha1"})
	require.Equal(t, []string{"v1alpha1"}, served.storedVersions(widgetsKey))
	steps = strings.Join(served.Steps, "\n")
	require.NotContains(t, steps, "may be removed")
	require.Contains(t, steps, "v1alpha1 of widgets.example.com is not served")
}

// TestManyLostFields checks that lost fields are found by lookup: with 40,000 unknown fields a
// search would take a while.
func TestManyLostFields(t *testing.T) {
	var fields []string
	for i := range 40_000 {
		fields = append(fields, fmt.Sprintf(`"f%d":1`, i))
	}
	o := resource{version: "v1alpha1", name: "a", spec: "{" + strings.Join(fields, ",") + "}"}
	r := newCluster(t, twoVersions()).add(o).migrate(Options{})
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Contains(t, r.reason(codePrunedField.Name), "39980 more")
}

// entries returns the versions in managedFields.
func (r result) entries(key string) (out []string) {
	var obj struct {
		Metadata struct{ ManagedFields []struct{ APIVersion string } }
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.out[key].value), &obj))
	for _, e := range obj.Metadata.ManagedFields {
		out = append(out, e.APIVersion)
	}
	return out
}

// naive returns the stored versions of the objects below dir, by a text search.
func naive(records map[string]stored, dir string) map[string]bool {
	found := map[string]bool{}
	for key, record := range records {
		if strings.HasPrefix(key, dir) {
			version, _, _ := strings.Cut(strings.TrimPrefix(record.value, `{"apiVersion":"example.com/`), `"`)
			found[version] = true
		}
	}
	return found
}

// TestProperty checks for any versions and any lists that storedVersions is the result of a
// separate reading, with the storage version; that no other kind changes; and a second run has
// nothing to do.
func TestProperty(t *testing.T) {
	all := []string{"v1alpha1", "v1alpha2", "v1beta1", "v1", "v2"}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t)
		var defs []definition
		for _, plural := range []string{"as", "bs", "cs"}[:1+random.IntN(3)] {
			listed := slices.Clone(all[:2+random.IntN(4)])
			random.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
			listed[random.IntN(len(listed))] += "*"
			list, err := json.Marshal(all[:random.IntN(len(all)+1)])
			require.NoError(t, err)
			d := definition{name: plural + ".example.com", versions: strings.Join(listed, " "), stored: string(list)}
			defs = append(defs, d)
			c.put(d.key(), d.json(t))
			for i := range random.IntN(12) {
				c.add(resource{crd: d.name, version: all[random.IntN(len(all))], name: fmt.Sprintf("o%d", i)})
			}
		}
		allowed := transform.Options{In: c.build(), Allow: []string{codeUnlistedVersion.Name}}
		r := migrate(t, allowed, Options{})
		require.NoError(t, r.err, "seed %d", seed)
		for _, d := range defs {
			_, plural, _, _ := d.names()
			want := naive(r.out, "/registry/example.com/"+plural+"/")
			storage, _, _ := strings.Cut(d.versions, "*")
			want[storage[strings.LastIndex(storage, " ")+1:]] = true
			require.ElementsMatch(t, slices.Collect(maps.Keys(want)), r.storedVersions(d.key()), "seed %d, %s",
				seed, d.versions)
			require.Equal(t, r.storedVersions(d.key()), r.resources(d.name).StoredVersions.After)
			require.Equal(t, len(want) > 1, r.resources(d.name).StoredVersions.Kept != "")
		}
		again := migrate(t, transform.Options{In: r.path, Allow: allowed.Allow}, Options{})
		require.Equal(t, transform.Unchanged, again.Outcome, "seed %d", seed)
	}
}

// planFunc is a transform in a function.
type planFunc func(ctx context.Context, v *transform.View) error

func (f planFunc) Plan(ctx context.Context, v *transform.View) error { return f(ctx, v) }

// TestBounded checks that the plan holds only the key of an object, for large objects and for many
// skipped ones.
func TestBounded(t *testing.T) {
	const objects, size = 400, 100_000
	c := newCluster(t, twoVersions())
	for i := range objects {
		c.add(resource{version: "v1alpha1", name: fmt.Sprintf("w%d", i),
			spec: `{"text":"` + strings.Repeat("x", size) + `"}`})
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	files := transform.Options{In: c.build(), Out: filepath.Join(t.TempDir(), "out.db"), DryRun: true}
	_, err := transform.Run(context.Background(), files, planFunc(func(ctx context.Context, v *transform.View) error {
		before := heap()
		require.NoError(t, New(Options{}).Plan(ctx, v))
		require.Less(t, heap()-before, int64(6<<20), "bytes kept of %d, the first megabytes of the plan among them",
			objects*size)
		return nil
	}))
	require.NoError(t, err)
}
