package kcp_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestVerifyEachKey: whichever live key of one side is deleted, written again or changed by a byte,
// it is found, and by its key; without what purge and import were given too.
func TestVerifyEachKey(t *testing.T) {
	sound := moveOf(t, kcptest.Other, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	sound.origin, sound.destination = "", ""
	dir := t.TempDir()
	for _, side := range []func(m *moveFiles) *string{originOut, destinationOut} {
		n := 0
		src := openFile(t, *side(&sound))
		for rec, err := range src.Live(context.Background(), nil) {
			require.NoError(t, err)
			n++
			if n%9 != 0 && clusterOf(rec.Key) != kcptest.Other {
				continue
			}
			m := sound
			*side(&m) = filepath.Join(dir, filepath.Base(*side(&sound))+string(rec.Key[len(rec.Key)-1:])+rec.Revision.String()+".db")
			change := snapshot.Change{Key: rec.Key, Value: append([]byte{}, rec.Value...), Lease: rec.Lease, Prior: rec.ModRevision}
			changeless := false
			switch n % 3 {
			case 0:
				change.Delete, change.Value, change.Lease = true, nil, 0
			case 1:
				change.Value[len(change.Value)/2] ^= 1
			case 2: // the same again, at another revision: no harm to what was moved, and a write all the same
				changeless = clusterOf(rec.Key) == kcptest.Other
			}
			writeChange(t, src, *side(&m), change)
			v := m.verdict(t)
			if changeless {
				require.Empty(t, v.Findings, "%s", rec.Key)
				continue
			}
			require.NotEmpty(t, v.Findings, "%s", rec.Key)
			for _, f := range v.Findings { // a definition that is lost is touched, too
				require.Equal(t, string(rec.Key), f.Key)
				require.Equal(t, *side(&m), f.File)
			}
		}
		require.Greater(t, n, 200)
	}
}

// writeChange writes one change on top of a snapshot.
func writeChange(t *testing.T, src *snapshot.Snapshot, path string, change snapshot.Change) {
	t.Helper()
	_, err := snapshot.Write(context.Background(), path, src, func(yield func(snapshot.Change, error) bool) { yield(change, nil) }, snapshot.WriteConfig{})
	require.NoError(t, err)
}
