package move

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestShardHash compares with the recorded Workspaces of a real kcp.
func TestShardHash(t *testing.T) {
	require.Equal(t, "1pfxsevk", shardHash("root"))
	require.Equal(t, "2e1tfbst", shardHash("shard-1"))
}

// TestShardHashZero checks that the hash has a leading zero if the sum of the name begins with a
// zero byte.
func TestShardHashZero(t *testing.T) {
	require.Equal(t, byte('0'), shardHash("s-83")[0])
}

// TestMoveWorkspace checks that three texts change, and nothing else.
func TestMoveWorkspace(t *testing.T) {
	const before = `{"kind":"Workspace" ,"metadata":{"annotations":{"core.kcp.io/shard":"root",` +
		`"internal.tenancy.kcp.io/shard":"1pfxsevk","<":"&"},` +
		`"labels":{"region":"us-east-2","x":"y"}},"spec":{"n":1.0}}`
	got, err := moveWorkspace([]byte(before), "shard-1", "us-east-1")
	require.NoError(t, err)
	want := before
	for _, c := range [][2]string{{`"root"`, `"shard-1"`}, {"1pfxsevk", "2e1tfbst"}, {"us-east-2", "us-east-1"},
		{`"Workspace" ,`, `"Workspace",`}} {
		require.Equal(t, 1, bytes.Count([]byte(want), []byte(c[0])))
		want = string(bytes.Replace([]byte(want), []byte(c[0]), []byte(c[1]), 1))
	}
	require.Equal(t, want, string(got))

	again, err := moveWorkspace(got, "shard-1", "")
	require.NoError(t, err)
	require.Same(t, &got[0], &again[0], "it says so already, and no region leaves the label")
}

func TestMoveLogicalCluster(t *testing.T) {
	got, err := moveLogicalCluster(
		[]byte(`{"metadata":{"annotations":{"core.kcp.io/\u0073hard":"ro\u006ft"},"name":"cluster"}}`), "shard-1")
	require.NoError(t, err)
	require.Equal(t, `{"metadata":{"annotations":{"core.kcp.io/\u0073hard":"shard-1"},"name":"cluster"}}`, string(got))
	for _, same := range []string{`{"metadata":{"annotations":{"core.kcp.io/shard":"shard\u002d1"}}}`} {
		value := []byte(same)
		got, err := moveLogicalCluster(value, "shard-1")
		require.NoError(t, err)
		require.Same(t, &value[0], &got[0], "spelled otherwise, it is the same name")
	}
	for _, bad := range []string{"k8s\x00", `{"metadata":5}`, `{"metadata":{"annotations":[]}}`, `{`, ""} {
		_, err := moveLogicalCluster([]byte(bad), "shard-1")
		require.Error(t, err, "%q", bad)
	}
}

func TestDropMigrating(t *testing.T) {
	got, err := dropMigrating(
		[]byte(`{"metadata":{"annotations":{"a":"b","internal.kcp.io/migrating":"root:m","z":"1"}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"metadata":{"annotations":{"a":"b","z":"1"}}}`, string(got))
}

// TestCopyFor checks that only the annotation of a copy changes, if present.
func TestCopyFor(t *testing.T) {
	for before, after := range map[string]string{
		`{"z":1,"metadata":{"name":"\u0061","annotations":{"b":"<","kcp.io/shard":"root","a":"\u003c"}},"a":[1 ,2]}` +
			"\n": "",
		` {"metadata":{"annotations":{"kcp.io\/shard":"root"}}}`: ` {"metadata":{"annotations":{"kcp.io\/shard":"shard-1"}}}`,
	} {
		if after == "" {
			after = strings.Replace(before, `"root"`, `"shard-1"`, 1)
		}
		out, err := copyFor([]byte(before), "shard-1")
		require.NoError(t, err)
		require.Equal(t, after, string(out))
	}
	for _, same := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{}}`, `{"metadata":{"annotations":null}}`,
		`{"metadata":{"annotations": {"a":"b"}}}`,
		`{"metadata":{"annotations":{"kcp.io/shard": "shard-1"}}}`, `{"kcp.io/shard":"root"}`, "k8s\x00\x12\x00",
		"\xd9\xd9\xf7\xa0",
	} {
		out, err := copyFor([]byte(same), "shard-1")
		require.NoError(t, err, same)
		require.Equal(t, same, string(out))
	}
	for _, wrong := range []string{`{"metadata":1}`, `{"metadata":{"annotations":[]}}`,
		`{"metadata":{"annotations":{"kcp.io/shard":1}}}`, `{"metadata":`} {
		_, err := copyFor([]byte(wrong), "shard-1")
		require.Error(t, err, wrong)
	}
}

// FuzzMoveWorkspace checks for any text that the edit fails or changes exactly three fields, once
// each.
func FuzzMoveWorkspace(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"annotations":{"core.kcp.io/shard":"root","internal.tenancy.kcp.io/shard":"1pfxsevk"},` +
			`"labels":{"region":"a"}},"spec":{"x":[1,2.0]}}`,
		`{}`, `{"metadata":null}`, `{"metadata":{"labels":{"a":"b","z":"y"}}}`, ` {"a":{"core.kcp.io/shard":1}} `,
		`{"metadata":[]}`, `[`, "\xd9\xd9\xf7\xa0",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := moveWorkspace(value, "shard-1", "us-east-1")
		if err != nil {
			return
		}
		was, _, err := encoding.DecodeObject(value)
		if err != nil {
			return // protobuf, or a number out of range
		}
		is, _, err := encoding.DecodeObject(got)
		require.NoError(t, err)
		meta := inner(was, "metadata")
		annotations := inner(meta, "annotations")
		annotations["core.kcp.io/shard"], annotations["internal.tenancy.kcp.io/shard"] = "shard-1", "2e1tfbst"
		inner(meta, "labels")["region"] = "us-east-1"
		require.Equal(t, was, is)
		again, err := moveWorkspace(got, "shard-1", "us-east-1")
		require.NoError(t, err)
		require.Same(t, &got[0], &again[0])
	})
}

// inner returns an object in another, created if missing.
func inner(in map[string]any, name string) map[string]any {
	out, ok := in[name].(map[string]any)
	if !ok {
		out = map[string]any{}
		in[name] = out
	}
	return out
}

// TestExtractNames checks names that are too long or cannot be a segment of a key.
func TestExtractNames(t *testing.T) {
	for name, ok := range map[string]bool{"": false, "a": true, "a/b": false, "a\nb": false, "\xff": false,
		strings.Repeat("a", 254): false} {
		require.Equal(t, ok, isName(name), name)
	}
	require.True(t, kcp.IsSystem("system:shard") && isName("system:shard"))
}

// forgetting is a purge that drops a place from the selection before the write.
type forgetting struct {
	*Purge
	of Place
}

func (f forgetting) Plan(ctx context.Context, v *transform.View) error {
	c, err := f.choose(ctx, v)
	if err == nil {
		err = c.plan(ctx)
		delete(c.Places, f.of)
	}
	return err
}

// TestScrubProved checks that the proof of a scrub does not rely on the selection of the purge.
func TestScrubProved(t *testing.T) {
	in := filepath.Join(t.TempDir(), "purged.db")
	_, err := transform.Run(context.Background(),
		transform.Options{In: kcptest.Single(t), Out: in, Allow: finding.Allowable(purgeCodes())},
		&Purge{Name: kcptest.Consumer})
	require.NoError(t, err)
	for _, at := range []Place{{Prefix: "/cache", Shard: "root", Cluster: kcptest.Consumer},
		{Prefix: "/registry", Cluster: kcptest.Consumer}} {
		p, out := &Purge{Name: kcptest.Consumer, Scrub: true}, filepath.Join(t.TempDir(), "out.db")
		_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out}, forgetting{p, at})
		require.ErrorIs(t, err, snapshot.ErrVerify)
		require.ErrorContains(t, err, "is left")
		require.NoFileExists(t, out)
	}
}

// TestVerifyRegion checks that the verification accepts a Workspace with its old region or with the
// region of the new shard, and no other. A region of an unregistered shard is only reported.
func TestVerifyRegion(t *testing.T) {
	was := []byte(
		`{"metadata":{"annotations":{"core.kcp.io/shard":"root","internal.tenancy.kcp.io/shard":"x"},` +
			`"labels":{"region":"old"}}}`)
	shard := &kcp.Shard{Registered: []kcp.RegisteredShard{{Name: "shard-1", Region: "here"},
		{Name: "root", Region: "there"}}}
	c := &checker{findings: newFindings(), outputs: []*output{{File: &kcp.File{Shards: []*kcp.Shard{shard}}}}}
	c.To = "shard-1"
	for region, ok := range map[string]bool{"": true, "here": true, "there": false, "mars": false} {
		now, err := moveWorkspace(was, "shard-1", region)
		require.NoError(t, err)
		require.Equal(t, ok, c.onlyMoved(was, now), region)
	}
	require.Empty(t, c.Notes)
	shard.Registered = nil
	now, err := moveWorkspace(was, "shard-1", "mars")
	require.NoError(t, err)
	require.True(t, c.onlyMoved(was, now))
	require.Len(t, c.Notes, 1)
}
