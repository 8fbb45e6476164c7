package survey

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// TestShardHash: as a real kcp has written it in the recorded Workspaces.
func TestShardHash(t *testing.T) {
	require.Equal(t, "1pfxsevk", ShardHash("root"))
	require.Equal(t, "2e1tfbst", ShardHash("shard-1"))
}

// TestShardHashZero: a name whose sum begins with a zero byte has a zero in front.
func TestShardHashZero(t *testing.T) {
	require.Equal(t, byte('0'), ShardHash("s-83")[0])
}

// TestMoveWorkspace: three texts change, and nothing else.
func TestMoveWorkspace(t *testing.T) {
	const before = `{"kind":"Workspace" ,"metadata":{"annotations":{"core.kcp.io/shard":"root","internal.tenancy.kcp.io/shard":"1pfxsevk","<":"&"},` +
		`"labels":{"region":"us-east-2","x":"y"}},"spec":{"n":1.0}}`
	got, err := MoveWorkspace([]byte(before), "shard-1", "us-east-1")
	require.NoError(t, err)
	want := before
	for _, c := range [][2]string{{`"root"`, `"shard-1"`}, {"1pfxsevk", "2e1tfbst"}, {"us-east-2", "us-east-1"}, {`"Workspace" ,`, `"Workspace",`}} {
		require.Equal(t, 1, bytes.Count([]byte(want), []byte(c[0])))
		want = string(bytes.Replace([]byte(want), []byte(c[0]), []byte(c[1]), 1))
	}
	require.Equal(t, want, string(got))

	again, err := MoveWorkspace(got, "shard-1", "")
	require.NoError(t, err)
	require.Same(t, &got[0], &again[0], "it says so already, and no region leaves the label")
}

func TestMoveLogicalCluster(t *testing.T) {
	got, err := MoveLogicalCluster([]byte(`{"metadata":{"annotations":{"core.kcp.io/\u0073hard":"ro\u006ft"},"name":"cluster"}}`), "shard-1")
	require.NoError(t, err)
	require.Equal(t, `{"metadata":{"annotations":{"core.kcp.io/\u0073hard":"shard-1"},"name":"cluster"}}`, string(got))
	for _, same := range []string{`{"metadata":{"annotations":{"core.kcp.io/shard":"shard\u002d1"}}}`} {
		value := []byte(same)
		got, err := MoveLogicalCluster(value, "shard-1")
		require.NoError(t, err)
		require.Same(t, &value[0], &got[0], "spelled otherwise, it is the same name")
	}
	for _, bad := range []string{"k8s\x00", `{"metadata":5}`, `{"metadata":{"annotations":[]}}`, `{`, ""} {
		_, err := MoveLogicalCluster([]byte(bad), "shard-1")
		require.Error(t, err, "%q", bad)
	}
}

func TestDropMigrating(t *testing.T) {
	got, err := DropMigrating([]byte(`{"metadata":{"annotations":{"a":"b","internal.kcp.io/migrating":"root:m","z":"1"}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"metadata":{"annotations":{"a":"b","z":"1"}}}`, string(got))
}

// TestCopyFor: the annotation gets another value where a copy has it, and nothing else changes.
func TestCopyFor(t *testing.T) {
	for before, after := range map[string]string{
		`{"z":1,"metadata":{"name":"\u0061","annotations":{"b":"<","kcp.io/shard":"root","a":"\u003c"}},"a":[1 ,2]}` + "\n": "",
		` {"metadata":{"annotations":{"kcp.io\/shard":"root"}}}`:                                                            ` {"metadata":{"annotations":{"kcp.io\/shard":"shard-1"}}}`,
	} {
		if after == "" {
			after = strings.Replace(before, `"root"`, `"shard-1"`, 1)
		}
		out, err := CopyFor([]byte(before), "shard-1")
		require.NoError(t, err)
		require.Equal(t, after, string(out))
	}
	for _, same := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations": {"a":"b"}}}`,
		`{"metadata":{"annotations":{"kcp.io/shard": "shard-1"}}}`, `{"kcp.io/shard":"root"}`, "k8s\x00\x12\x00", "\xd9\xd9\xf7\xa0",
	} {
		out, err := CopyFor([]byte(same), "shard-1")
		require.NoError(t, err, same)
		require.Equal(t, same, string(out))
	}
	for _, wrong := range []string{`{"metadata":1}`, `{"metadata":{"annotations":[]}}`, `{"metadata":{"annotations":{"kcp.io/shard":1}}}`, `{"metadata":`} {
		_, err := CopyFor([]byte(wrong), "shard-1")
		require.Error(t, err, wrong)
	}
}

// FuzzMoveWorkspace: whatever the text, the edit fails or changes three fields and no other, and
// once.
func FuzzMoveWorkspace(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"annotations":{"core.kcp.io/shard":"root","internal.tenancy.kcp.io/shard":"1pfxsevk"},"labels":{"region":"a"}},"spec":{"x":[1,2.0]}}`,
		`{}`, `{"metadata":null}`, `{"metadata":{"labels":{"a":"b","z":"y"}}}`, ` {"a":{"core.kcp.io/shard":1}} `, `{"metadata":[]}`, `[`, "\xd9\xd9\xf7\xa0",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := MoveWorkspace(value, "shard-1", "us-east-1")
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
		again, err := MoveWorkspace(got, "shard-1", "us-east-1")
		require.NoError(t, err)
		require.Same(t, &got[0], &again[0])
	})
}

// inner is an object in another, made where it is missing.
func inner(in map[string]any, name string) map[string]any {
	out, ok := in[name].(map[string]any)
	if !ok {
		out = map[string]any{}
		in[name] = out
	}
	return out
}
