package compare

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// parted returns the parting of two files, which is the same in both directions.
func parted(t *testing.T, a, b string) Parting {
	t.Helper()
	var sides [2]*snapshot.Snapshot
	for i, path := range []string{a, b} {
		s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		sides[i] = s
	}
	p, err := Part(t.Context(), sides[0], sides[1])
	require.NoError(t, err)
	back, err := Part(t.Context(), sides[1], sides[0])
	require.NoError(t, err)
	require.Equal(t, p, back)
	return p
}

// story is a member that is saved after each script.
type story struct{ server *etcdtest.Server }

func begin(t *testing.T, dataDir string) *story {
	t.Helper()
	return &story{server: etcdtest.Start(t, dataDir)}
}

func (s *story) save(t *testing.T, script string) string {
	t.Helper()
	etcdtest.Run(t, s.server, script)
	path := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, s.server, path)
	return path
}

// TestPart: two members restored from one file agree until they are written differently.
func TestPart(t *testing.T) {
	first := begin(t, filepath.Join(t.TempDir(), "first.etcd"))
	start := first.save(t, "put a 1\nput b 1\nput a 2\ndel b")
	one, other := begin(t, etcdtest.Restore(t, start)), begin(t, etcdtest.Restore(t, start))
	last := etcdtest.Revision(t, one.server)
	a, b := one.save(t, "put c 1\nput d 1"), other.save(t, "put c 1")
	require.Equal(t, Parting{From: 1, To: last + 1}, parted(t, a, b))

	a, b = one.save(t, "put e 1"), other.save(t, "put x 1\nput e 1")
	require.Equal(t, Parting{From: 1, To: last + 3, At: last + 2, Keys: []string{"d", "x"}}, parted(t, a, b))
	a, b = one.save(t, ""), other.save(t, fmt.Sprintf("compact %d", last+3))
	require.Equal(t, Parting{From: last + 3, To: last + 3, At: last + 3, Keys: []string{"d"}}, parted(t, a, b))

	bumped := begin(t, etcdtest.Restore(t, start, etcdtest.BumpRevision(1000)))
	p := parted(t, start, bumped.save(t, ""))
	require.False(t, p.Comparable(), p)
}

// TestPartValue: the same key with other values.
func TestPartValue(t *testing.T) {
	start := etcdtest.Build(t, "put a 1\nput b 1")
	a := begin(t, etcdtest.Restore(t, start)).save(t, "put a 2\nput c 1")
	b := begin(t, etcdtest.Restore(t, start)).save(t, "put a 3\nput c 1")
	require.Equal(t, Parting{From: 1, To: 5, At: 4, Keys: []string{"a"}}, parted(t, a, b))
	require.Equal(t, Parting{From: 1, To: 3}, parted(t, start, b))

	// below a compaction, the first key in order
	a = begin(t, etcdtest.Restore(t, start)).save(t, "put c 1\nput d 1\ncompact 5")
	b = begin(t, etcdtest.Restore(t, start)).save(t, "put d 1\nput e 1\ncompact 5")
	require.Equal(t, Parting{From: 5, To: 5, At: 5, Keys: []string{"c"}}, parted(t, a, b))
}
