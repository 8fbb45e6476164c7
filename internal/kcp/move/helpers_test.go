package move_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Logical clusters and keys of the recorded shards.
const (
	provider, consumer, other = kcptest.Provider, kcptest.Consumer, kcptest.Other
	child, consumer1          = kcptest.Child, kcptest.Consumer1

	configMaps  = "/registry/core/configmaps/"
	secrets     = "/registry/core/secrets/"
	bindings    = "/registry/apis.kcp.io/apibindings/customresources/"
	definitions = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	boundDir    = definitions + "system:bound-crds/"
	systemDir   = definitions + "system:system-crds/"

	itsEvent    = "/registry/core/events/" + consumer + "/default/ev1"
	itsSettings = configMaps + consumer + "/default/settings"
	itsSecret   = secrets + consumer + "/default/sec"
	itsGizmo    = "/registry/crd.example.org/gizmos/customresources/" + consumer + "/default/g1"
	itsWidget   = "/registry/example.dev/widgets/" + kcptest.ExampleDev + "/" + consumer + "/default/w1"
	trap        = configMaps + other + "/" + consumer + "/trap"
	another     = configMaps + consumer1 + "/default/settings"
	// widgetsDefinition is the bound definition of widgets.example.dev, on both recorded shards.
	widgetsDefinition = boundDir + "af5b5003-97ab-4fd4-a293-6e98034dc20c"
	// opaque is a value that no key decrypts.
	opaque = "k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"
)

// home returns the key of a LogicalCluster.
func home(name string) string { return kcptest.LogicalClusterKey(name) }

func workspaceKey(parent, name string) string {
	return "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + parent + "/" + name
}

// option is an option of a run.
type option func(*transform.Options)

func allow(codes ...string) option {
	return func(o *transform.Options) { o.Allow = append(o.Allow, codes...) }
}

// allowAll allows all allowable codes of a command.
func allowAll(spec transform.Spec) option { return allow(finding.Allowable(spec.Codes)...) }

func under(prefixes ...string) option { return func(o *transform.Options) { o.Prefixes = prefixes } }

func encrypting(by transform.Encrypter) option {
	return func(o *transform.Options) { o.Encryption = by }
}

func dryRun(o *transform.Options) { o.DryRun = true }

// result is the result of a run.
type result struct {
	t       testing.TB
	in, out string
	*transform.Report
	*move.Receipts
	Manifest *archive.Manifest
	err      error
}

func run(t testing.TB, in string, options []option, of func(transform.Options) transform.Transform) result {
	t.Helper()
	o := transform.Options{In: in, Out: filepath.Join(t.TempDir(), "out.db")}
	for _, set := range options {
		set(&o)
	}
	r, err := transform.Run(context.Background(), o, of(o))
	receipts, manifest := transformtest.Section[move.Receipts](r), transformtest.Section[move.Manifest](r).Manifest
	return result{t, in, o.Out, r, receipts, manifest, err}
}

func extract(t testing.TB, in string, x move.Extract, options ...option) result {
	t.Helper()
	return run(t, in, options, func(o transform.Options) transform.Transform {
		x.Archive, x.Prefixes = o.Out, o.Prefixes
		return &x
	})
}

func purge(t testing.TB, in string, p move.Purge, options ...option) result {
	t.Helper()
	return run(t, in, options, func(o transform.Options) transform.Transform {
		p.Prefixes = o.Prefixes
		return &p
	})
}

// importInto imports an archive that passes archive.OpenChecked.
func importInto(t testing.TB, from, in string, i move.Import, options ...option) result {
	t.Helper()
	return run(t, in, options, func(o transform.Options) transform.Transform {
		var err error
		i.Archive, i.Prefixes = openFile(t, from), o.Prefixes
		i.Manifest, err = archive.OpenChecked(context.Background(), i.Archive)
		require.NoError(t, err)
		return &i
	})
}

func putBack(t testing.TB, from, in string, p move.PutBack, options ...option) result {
	t.Helper()
	return run(t, in, options, func(o transform.Options) transform.Transform {
		p.From, p.Prefixes = openFile(t, from), o.Prefixes
		return &p
	})
}

// archiveOf extracts consumer from a shard and returns the archive. purgeOf purges a logical
// cluster and returns the new file of the shard.
func archiveOf(t testing.TB, shard string, options ...option) string {
	t.Helper()
	return extract(t, shard, move.Extract{Name: consumer}, options...).written().out
}

func purgeOf(t testing.TB, name, in string) string {
	t.Helper()
	return purge(t, in, move.Purge{Name: name}, allow("owner-points-here")).written().out
}

func (r result) written() result {
	r.t.Helper()
	require.NoError(r.t, r.err, "%+v", r.Problems)
	require.Equal(r.t, transform.Written, r.Outcome)
	return r
}

func (r result) unchanged() result {
	r.t.Helper()
	require.NoError(r.t, r.err, "%+v", r.Problems)
	require.Equal(r.t, transform.Unchanged, r.Outcome)
	return r
}

// refused requires that the run was refused with this code, perhaps among others, and returns its
// problems.
func (r result) refused(code string) []finding.Finding {
	r.t.Helper()
	require.ErrorIs(r.t, r.err, transform.ErrRefused, "%+v", r.Problems)
	require.NoFileExists(r.t, r.out)
	require.Contains(r.t, r.codes(), code)
	return r.of(code)
}

// fails requires an error and no output file.
func (r result) fails(is error, says string) {
	r.t.Helper()
	require.ErrorIs(r.t, r.err, is)
	require.ErrorContains(r.t, r.err, says)
	require.NoFileExists(r.t, r.out)
}

// codes returns the codes of the problems, each once.
func (r result) codes() []string {
	found := []string{}
	for _, p := range r.Problems {
		found = append(found, p.Code.Name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (r result) of(code string) (found []finding.Finding) {
	for _, p := range r.Problems {
		if p.Code.Name == code {
			found = append(found, p)
		}
	}
	return found
}

func (r result) reasons(code string) string {
	var all []string
	for _, p := range r.of(code) {
		all = append(all, p.Reason)
	}
	return strings.Join(all, "\n")
}

// requireNoneSkipped requires that no allowed problem skipped a record.
func (r result) requireNoneSkipped() {
	r.t.Helper()
	left, _ := r.Errors()
	require.Zero(r.t, left)
}

// requireSteps requires for each text a step with all words of the text, separated by "…".
func (r result) requireSteps(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		require.True(r.t, r.hasStep(text), "%q: %q", text, r.Steps)
	}
}

func (r result) requireNoStep(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		require.False(r.t, r.hasStep(text), "%q: %q", text, r.Steps)
	}
}

func (r result) hasStep(text string) bool {
	return slices.ContainsFunc(r.Steps, func(step string) bool {
		return !slices.ContainsFunc(strings.Split(text, "…"),
			func(word string) bool { return !strings.Contains(step, word) })
	})
}

// value returns the stored value of a key in the output.
func (r result) value(key string) string {
	r.t.Helper()
	return valueIn(r.t, r.out, key)
}

func valueIn(t testing.TB, path, key string) string {
	t.Helper()
	rec, err := openFile(t, path).Get(context.Background(), []byte(key))
	require.NoError(t, err)
	require.NotNil(t, rec, "no such key: %s", key)
	return string(rec.Value)
}

// arrived returns the records that a real etcd has with the output and not with the input; all
// other records of the input must be equal, except changed keys.
func (r result) arrived(changed ...string) (came []etcdtest.KV, leases map[int64]int64) {
	r.t.Helper()
	before, _ := kcptest.Dump(r.t, r.in)
	after, leases := kcptest.Dump(r.t, r.out)
	was := byKey(before)
	for _, kv := range after {
		old, there := was[string(kv.Key)]
		switch {
		case !there:
			came = append(came, kv)
			continue
		case slices.Contains(changed, string(kv.Key)):
			require.Greater(r.t, kv.ModRevision, old.ModRevision, "%s", kv.Key)
		default:
			require.Equal(r.t, old, kv)
		}
		delete(was, string(kv.Key))
	}
	require.Empty(r.t, was, "lost")
	return came, leases
}

// requireGone requires that a real etcd has the same records with the output as with the input,
// including revisions and leases, except some keys, and returns the number of these keys.
func (r result) requireGone(gone func(key []byte) bool) int {
	r.t.Helper()
	before, leasesBefore := kcptest.Dump(r.t, r.in)
	after, leasesAfter := kcptest.Dump(r.t, r.out)
	n := len(before)
	before = slices.DeleteFunc(before, func(kv etcdtest.KV) bool { return gone(kv.Key) })
	require.Equal(r.t, before, after)
	require.Equal(r.t, leasesBefore, leasesAfter)
	return n - len(before)
}

func byKey(kvs []etcdtest.KV) map[string]etcdtest.KV {
	all := map[string]etcdtest.KV{}
	for _, kv := range kvs {
		all[string(kv.Key)] = kv
	}
	return all
}

// dumped returns the records of a restored etcd for which meant is true.
func dumped(t testing.TB, path string, meant func(key []byte) bool) []etcdtest.KV {
	t.Helper()
	kvs, _ := kcptest.Dump(t, path)
	return slices.DeleteFunc(kvs, func(kv etcdtest.KV) bool { return !meant(kv.Key) })
}

// clusterOf returns the logical cluster of a key of a shard below /registry.
func clusterOf(key []byte) string {
	k, err := keys.KCPShard{Prefix: "/registry"}.Parse(key)
	if err != nil {
		return ""
	}
	return k.Cluster
}

// ofCluster and copyOf select the keys of a logical cluster, and of its copies from a shard.
func ofCluster(names ...string) func(key []byte) bool {
	return func(key []byte) bool { return slices.Contains(names, clusterOf(key)) }
}

func copyOf(shard, cluster string) func(key []byte) bool {
	return func(key []byte) bool {
		k, err := keys.KCPCache{Prefix: "/cache"}.Parse(key)
		return err == nil && k.Shard == shard && k.Cluster == cluster
	}
}

func inCache(key []byte) bool { return bytes.HasPrefix(key, []byte("/cache/")) }

// eitherOf selects the keys that at least one of several functions selects.
func eitherOf(all ...func(key []byte) bool) func(key []byte) bool {
	return func(key []byte) bool {
		return slices.ContainsFunc(all, func(of func([]byte) bool) bool { return of(key) })
	}
}

func openFile(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// read opens a file; nil for no path.
func read(t testing.TB, path string) *inspect.Reader {
	t.Helper()
	if path == "" {
		return nil
	}
	return inspect.NewReader(openFile(t, path), nil)
}

// leasesOf returns the TTLs of the leases of a file, by ID.
func leasesOf(t testing.TB, path string) map[int64]int64 {
	t.Helper()
	leases, err := openFile(t, path).Leases(context.Background())
	require.NoError(t, err)
	return leases
}
