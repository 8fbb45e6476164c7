package kcp_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/kcp/verify"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// moveFiles are the files of a whole move.
type moveFiles struct {
	origin, archive, originOut  string
	destination, destinationOut string
	caches, cachesBefore        []string
}

// moveOf moves a logical cluster from one shard to another: extract, purge and import.
func moveOf(t testing.TB, name, origin, destination string) moveFiles {
	t.Helper()
	m := moveFiles{origin: origin, destination: destination, archive: extractOf(t, origin, extraction{Name: name})}
	m.originOut = purgeOf(t, name, origin)
	m.destinationOut = importInto(t, m.archive, destination, carry.Import{}, transform.Options{}).written().out
	return m
}

// purgeOf is a file without a logical cluster.
func purgeOf(t testing.TB, name, in string) (out string) {
	t.Helper()
	return purgeWith(t, in, purge.Purge{Name: name}, codeOwnerPointsHere)
}

// purgeWith is the output of a purge.
func purgeWith(t testing.TB, in string, o purge.Purge, allow ...string) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "purged.db")
	r, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Allow: allow, Prefixes: o.Prefixes}, &o)
	require.NoError(t, err, "%+v", r.Problems)
	return out
}

// verdict opens the files of a move and checks it.
func (m moveFiles) verdict(t testing.TB, more ...func(*verify.Move)) *verify.Verdict {
	t.Helper()
	v, err := m.verify(t, more...)
	require.NoError(t, err)
	return v
}

func (m moveFiles) verify(t testing.TB, more ...func(*verify.Move)) (*verify.Verdict, error) {
	t.Helper()
	return m.open(t, more...).Verify(context.Background())
}

func (m moveFiles) open(t testing.TB, more ...func(*verify.Move)) verify.Move {
	t.Helper()
	open := func(path string) *inspect.Reader {
		if path == "" {
			return nil
		}
		return inspect.NewReader(openFile(t, path), nil)
	}
	move := verify.Move{
		Archive: open(m.archive), OriginOut: open(m.originOut), DestinationOut: open(m.destinationOut),
		Origin: open(m.origin), Destination: open(m.destination),
	}
	for _, path := range m.caches {
		move.Caches = append(move.Caches, open(path))
	}
	for _, path := range m.cachesBefore {
		move.CachesBefore = append(move.CachesBefore, open(path))
	}
	for _, change := range more {
		change(&move)
	}
	return move
}

// requireSound requires that each question is answered with no.
func requireSound(t testing.TB, v *verify.Verdict) {
	t.Helper()
	require.Empty(t, v.Findings)
	require.Empty(t, v.Unchecked)
	require.Len(t, v.Answers, len(verify.Questions()))
	for _, a := range v.Answers {
		require.Equal(t, "no", a.Answer, "%s", a.Question)
		require.NotZero(t, a.Checked, "%s", a.Question)
	}
	require.True(t, v.Sound())
}

// withTTL are keys with their values and lease TTLs, as a restored etcd answers.
func withTTL(t testing.TB, path string, of func(key []byte) bool) map[string][2]any {
	t.Helper()
	kvs, leases := kcptest.Dump(t, path)
	found := map[string][2]any{}
	for _, kv := range kvs {
		if of(kv.Key) {
			require.Equal(t, kv.Lease != 0, leases[kv.Lease] != 0, "%s", kv.Key)
			found[string(kv.Key)] = [2]any{string(kv.Value), leases[kv.Lease]}
		}
	}
	return found
}

// TestThereAndBack: a logical cluster that goes to another shard and comes back has the same keys,
// values and lease TTLs as at first, and so has everything else on both shards, to the revision;
// each move is found sound.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{kcptest.Consumer, kcptest.Other} {
		t.Run(name, func(t *testing.T) {
			root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
			there := moveOf(t, name, root, shard1)
			requireSound(t, there.verdict(t))
			back := moveOf(t, name, there.destinationOut, there.originOut)
			requireSound(t, back.verdict(t))

			its := func(key []byte) bool { return clusterOf(key) == name }
			all := func([]byte) bool { return true }
			require.NotEmpty(t, withTTL(t, there.destinationOut, its))
			require.Equal(t, withTTL(t, root, its), withTTL(t, there.destinationOut, its))
			require.Empty(t, withTTL(t, there.originOut, its))
			require.Equal(t, withTTL(t, root, all), withTTL(t, back.destinationOut, all))
			require.Equal(t, withTTL(t, shard1, all), withTTL(t, back.originOut, all))
			requireSameRest(t, root, back.destinationOut, its)
			requireSameRest(t, shard1, back.originOut, its)
		})
	}
}

// requireSameRest requires that all keys but some are at their old revisions, too.
func requireSameRest(t testing.TB, before, after string, but func(key []byte) bool) {
	t.Helper()
	was, _ := kcptest.Dump(t, before)
	is, _ := kcptest.Dump(t, after)
	theirs := func(kv etcdtest.KV) bool { return but(kv.Key) }
	require.Equal(t, slices.DeleteFunc(was, theirs), slices.DeleteFunc(is, theirs))
}
