package move_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestExtractUnreadable checks that an unreadable value without effect on needs is copied as
// stored. With --with-children, unreadable records that may name children refuse or warn.
func TestExtractUnreadable(t *testing.T) {
	ca, workspace := configMaps+consumer+"/default/kube-root-ca.crt", workspaceKey(consumer, "child")
	r := extract(t, root(t, replace(ca, opaque)), itself).written()
	require.Equal(t, []archive.Encryption{{Name: "aescbc:v1:key1", Keys: 1}}, r.Manifest.Encryption)
	require.Equal(t, opaque, r.value(ca))
	require.Contains(t, extract(t, root(t, replace(ca, "{")), itself).written().codes(), "undecodable")

	in := root(t, replace(home(child), opaque))
	extract(t, in, family).refused("encrypted")
	extract(t, in, itself).written()
	for code, value := range map[string]string{"encrypted": opaque, "undecodable": "{"} {
		in := root(t, replace(workspace, value))
		r := extract(t, in, family, allowAll(move.ExtractSpec))
		found := r.refused(code)
		require.Equal(t, []string{code}, r.codes())
		require.Equal(t, workspace, found[0].Key)
		require.Contains(t, found[0].Reason, "its logical cluster")
		extract(t, in, itself).written()

		in = root(t, replace(home(other), value))
		r = extract(t, in, family).written()
		require.Equal(t, []string{code}, r.codes())
		require.Equal(t, finding.Warning, r.Problems[0].Level)
		require.Contains(t, r.Problems[0].Reason, `the parent of "`+other+`" is unknown`)
		require.NotContains(t, extract(t, in, itself).written().codes(), code, "no child is taken along")
	}
}

// TestExtractWarns checks that a missing definition is listed, an unknown key stays, and a parent
// on another shard is reported.
func TestExtractWarns(t *testing.T) {
	whole := extract(t, root(t), itself).written().Manifest
	gone := whole.Definitions[0]
	r := extract(t, root(t, drop("/registry"+gone.Key)), itself).written()
	require.Contains(t, r.codes(), "missing-definition")
	require.Len(t, r.Manifest.Missing, 1)
	missing := r.Manifest.Missing[0]
	require.Equal(t, []string{gone.UID, gone.Resource}, []string{missing.UID, missing.Resource})
	require.NotEmpty(t, missing.StoredVersions)
	require.Len(t, r.Manifest.Definitions, len(whole.Definitions)-1)

	malformed := "/registry/example.dev/widgets/customresources"
	r = extract(t, root(t, put(malformed, "x")), move.Extract{Name: other}).written()
	require.Equal(t, []string{"unknown-key"}, r.codes())
	require.Equal(t, malformed, r.Problems[0].Key)
	require.Equal(t, []string{"owner-unseen"}, extract(t, shard1(t), move.Extract{Name: consumer1}).written().codes())
}

func TestExtractNoCluster(t *testing.T) {
	in := root(t)
	for name, says := range map[string]string{
		"root:consumer":    `is the path of "2y3qvnqz5ga11oc4"`,
		consumer1:          `on shard "shard-1"`,
		"":                 "no such logical cluster",
		consumer[:10]:      consumer,
		consumer + "/evil": "no such logical cluster",
	} {
		r := extract(t, in, move.Extract{Name: name})
		r.fails(kcp.ErrNoCluster, says)
		require.Equal(t, transform.Failed, r.Outcome)
		require.NotEmpty(t, r.Input.SHA256)
	}
	extract(t, archiveOf(t, in), itself).fails(archive.ErrIsArchive, "")
	extract(t, recorded(t, kcptest.Cache), itself).fails(kcp.ErrNoShard, "")
}

// TestExtractOutput checks that no file is overwritten, and a failed run leaves no file.
func TestExtractOutput(t *testing.T) {
	in, folder := root(t), t.TempDir()
	to := func(path string) option { return func(o *transform.Options) { o.Out = path } }
	taken, damaged := filepath.Join(folder, "taken"), filepath.Join(folder, "damaged")
	require.NoError(t, os.WriteFile(taken, []byte("mine"), 0o600))
	require.ErrorIs(t, extract(t, in, itself, to(in)).err, transform.ErrOutIsIn)
	require.ErrorIs(t, extract(t, in, itself, to(taken)).err, os.ErrExist)

	ctx, cancel := context.WithCancel(t.Context())
	out := filepath.Join(folder, "out")
	_, err := transform.Run(ctx, transform.Options{In: in, Out: out, Progress: func(phase string, _ func() float64) {
		if phase == "write" {
			cancel()
		}
	}}, &move.Extract{Name: consumer})
	require.ErrorIs(t, err, context.Canceled)

	image, err := os.ReadFile(in)
	require.NoError(t, err)
	image[len(image)/2] ^= 1
	require.NoError(t, os.WriteFile(damaged, image, 0o600))
	err = extract(t, damaged, itself, to(out)).err
	require.True(t, errors.Is(err, snapshot.ErrDigest) || errors.Is(err, snapshot.ErrDamaged), err)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

// TestExtractHostileNames checks that the manifest omits texts that it cannot have, and the record
// is copied as stored: one odd object does not prevent the backup of a tenant.
func TestExtractHostileNames(t *testing.T) {
	lc, path := home(consumer), `"kcp.io/path":"root:consumer"`
	binding := bindings + consumer + "/evil"
	edits := func(pairs ...string) edit { return swap(lc, pairs...) }
	bind := func(bound string) edit {
		return put(binding,
			`{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"evil"},"spec":{"reference":`+
				`{"export":{"path":"root","name":"e"}}},"status":{"boundResources":[`+bound+`]}}`)
	}
	for name, c := range map[string]struct {
		change    edit
		key, says string
		keys      int
	}{
		"a path":      {edits(path, `"kcp.io/path":"root:\u001b[2J"`), lc, "leaves out its path", 36},
		"a long path": {edits(path, `"kcp.io/path":"`+strings.Repeat("a", 5000)+`"`), lc, "leaves out its path", 36},
		"an owner": {edits(`"name":"consumer"`, `"name":"\u001b]0;x\u0007"`), lc, "leaves out its owner's name",
			36},
		"no UID": {bind(bound("g", "r", `"identityHash":"zz"`, "v1")), binding,
			"an identity, the UID of a schema", 37},
		"a path as UID": {bind(bound("g", "r", `"UID":"../../a"`, "v1")), binding, "the UID of a schema", 37},
		"a type":        {bind(bound(`\u001b`, "r", `"UID":"u"`, `\u001b`)), binding, "a type, a version", 37},
	} {
		t.Run(name, func(t *testing.T) {
			in := root(t, c.change)
			planned := extract(t, in, itself, dryRun)
			require.NoError(t, planned.err)
			r := extract(t, in, itself).written()
			require.Equal(t, r.Manifest, planned.Manifest)
			require.Equal(t, c.keys, r.Manifest.Clusters[0].Keys)
			found := r.of("odd-name")
			require.Len(t, found, 1)
			require.Equal(t, []any{finding.Warning, c.key}, []any{found[0].Level, found[0].Key})
			require.Contains(t, found[0].Reason, c.says)
			require.Equal(t, valueIn(t, in, c.key), r.value(c.key))
		})
	}
	in := root(t, func(t testing.TB, client *clientv3.Client) {
		for _, group := range []string{"g\xff.io", "g\x1b.io", "g\u202e.io"} {
			put("/registry/"+group+"/things/customresources/"+consumer+"/a", `{"metadata":{"name":"a"}}`)(t, client)
		}
	})
	r := extract(t, in, itself).written()
	require.Equal(t, 36, r.Manifest.Clusters[0].Keys, "none of them is a key of a shard")
	require.Contains(t, r.codes(), "unknown-key")
}

// bound returns a type bound by an APIBinding.
func bound(group, resource, schema, version string) string {
	return `{"group":"` + group + `","resource":"` + resource + `","schema":{` + schema + `},"storageVersions":["` +
		version + `"]}`
}

// TestExtractUnlistable checks that a name that no manifest can list refuses the run, even a dry
// run.
func TestExtractUnlistable(t *testing.T) {
	long := "/registry/example.dev/" + strings.Repeat("a", 5000) + "/customresources/" + other + "/a"
	in := root(t, derive(home(child), home("3evil\x1b[2J")), put(long, `{"metadata":{"name":"a"}}`))
	for _, mode := range []option{dryRun, func(*transform.Options) {}} {
		for _, x := range []move.Extract{family, {Name: other}} {
			r := extract(t, in, x, allowAll(move.ExtractSpec), mode)
			r.refused("odd-name")
			require.NotErrorIs(t, r.err, archive.ErrDamaged)
		}
	}
}
