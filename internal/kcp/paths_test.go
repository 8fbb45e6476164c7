package kcp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	otherPath = "root:other"
	poisoned  = "/registry/core/configmaps/" + otherPath + "/" + kcptest.Consumer + "/lost"
	healed    = "/registry/core/configmaps/" + kcptest.Other + "/" + kcptest.Consumer + "/lost"
)

// underPath is the root shard with an object of a logical cluster under its path, as an early kcp
// wrote it.
func underPath(t *testing.T) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		value := kcptest.Get(t, client, kcptest.Trapped()[1])
		for field, path := range map[string][]string{"lost": {"metadata", "name"}, otherPath: {"metadata", "annotations", "kcp.io/cluster"}} {
			changed, err := encoding.Set(value, field, path...)
			require.NoError(t, err)
			value = changed
		}
		kcptest.Put(t, client, poisoned, value)
	})
}

// TestKeysUnderPathPutBack: the object gets the key and the annotation of its logical cluster, from
// the same file too.
func TestKeysUnderPathPutBack(t *testing.T) {
	root := underPath(t)
	a := putBack(t, root, root, carry.PutBack{}, transform.Options{}).written()
	require.Equal(t, transform.Changes{Created: 1}, a.report.Changes)
	meta, err := encoding.ReadMeta([]byte(a.value(healed)))
	require.NoError(t, err)
	require.Equal(t, kcptest.Other, meta.Annotations["kcp.io/cluster"])
	require.Equal(t, kcptest.Other, a.report.Clusters[0].Name)

	again := putBack(t, root, a.out, carry.PutBack{}, transform.Options{})
	require.NoError(t, again.err, "%+v", again.report.Problems)
	require.Equal(t, transform.Unchanged, again.report.Outcome, "what was put back is no problem")

	gone, out := purged(t, a.out, purge.Purge{Orphans: true, Name: otherPath})
	require.Equal(t, transform.Changes{Deleted: 1}, gone.Changes)
	_, _, err = tryExtract(t, out, extraction{Name: kcptest.Other})
	require.NoError(t, err, "the archive has the object now")
}

// TestKeysUnderPathExtracted: an archive that lacks them has to be allowed.
func TestKeysUnderPathExtracted(t *testing.T) {
	root := underPath(t)
	r, _, err := tryExtract(t, root, extraction{Name: kcptest.Other})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{"keys-under-path"}, codes(r.report))
	require.Equal(t, poisoned, r.Problems[0].Key)
	require.Contains(t, r.Problems[0].Reason, otherPath)
	extracted(t, root, extraction{Name: kcptest.Other, Allow: []string{"keys-under-path"}})
}

// TestKeysUnderPathPurged: they go with their logical cluster.
func TestKeysUnderPathPurged(t *testing.T) {
	r, out := purged(t, underPath(t), purge.Purge{Name: kcptest.Other}, codeOwnerPointsHere)
	without, _ := purged(t, kcptest.Recorded(t, kcptest.Root), purge.Purge{Name: kcptest.Other}, codeOwnerPointsHere)
	require.Equal(t, without.Changes.Deleted+1, r.Changes.Deleted)
	left, _ := kcptest.Dump(t, out)
	for _, kv := range left {
		require.False(t, strings.Contains(string(kv.Key), otherPath), "%s", kv.Key)
	}
}

// TestKeysUnderPathVerified: a move that lost them is not sound, and no other record is blamed.
func TestKeysUnderPathVerified(t *testing.T) {
	m := moveFiles{origin: underPath(t), destination: kcptest.Recorded(t, kcptest.Shard1)}
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Other, Allow: []string{"keys-under-path"}})
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{}).written().out
	without := m
	without.origin = ""
	check := func(m moveFiles, want ...string) {
		t.Helper()
		v := m.verdict(t)
		require.Equal(t, want, codesOf(v), "%+v", v.Findings)
		require.Contains(t, v.Findings[0].Reason+v.Findings[0].Key, otherPath)
	}
	m.originOut = purgeOf(t, kcptest.Other, m.origin)
	without.originOut = m.originOut
	check(m, "keys-under-path")
	check(without, "keys-under-path")
	m.originOut = purgeWith(t, m.origin, purge.Purge{Name: kcptest.Other, Scrub: true}, codeOwnerPointsHere)
	check(m, "keys-under-path")
	m.origin = kcptest.Recorded(t, kcptest.Root)
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Other})
	m.originOut = purgeOf(t, kcptest.Other, m.origin)
	m.destination = kcptest.Edit(t, m.destination, func(client *clientv3.Client) { kcptest.Put(t, client, poisoned, []byte("x")) })
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{}).written().out
	check(m, "keys-under-path")
}
