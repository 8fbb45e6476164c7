package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestGenerations writes ten times, each time on the output of the time before.
func TestGenerations(t *testing.T) {
	path := copyOf(t, deepKeys(t))
	want := modelOf(t, open(t, path))
	for g := range 10 {
		s := open(t, path)
		var changes []Change
		for i := range 200 {
			key := fmt.Sprintf("/k/%06d", i*150)
			switch {
			case i%10 == g:
				changes = append(changes, del(key))
			default:
				changes = append(changes, put(key, fmt.Sprintf("generation %d", g)))
			}
		}
		changes = append(changes, put(fmt.Sprintf("/g/%d", g), strings.Repeat("g", 10_000)))
		want = want.apply(changes...)
		var res WriteResult
		path, res = write(t, s, WriteConfig{}, changes...)
		untouched(t, path)
		out := open(t, path)
		require.Equal(t, want, modelOf(t, out), "generation %d", g)
		require.Equal(t, len(want), res.Keys)
		keptBelow(t, s, out)
		require.Equal(t, s.db.TxID+1, out.db.TxID)
	}
	require.Empty(t, findings(t, open(t, path)))
	sound(t, path)
	sameAsRestored(t, path, nil)
}

// TestGrowth: an output is larger than its input by little more than what was written.
func TestGrowth(t *testing.T) {
	in := copyOf(t, deepKeys(t))
	s := open(t, in)
	for _, n := range []int{1, 10, 1000, 5000} {
		var changes []Change
		var bytes int64
		for i := range n {
			c := put(fmt.Sprintf("/k/%06d", i*7), string(etcdtest.Blob(fmt.Sprint(i), 2048)))
			bytes += int64(len(c.Key) + len(c.Value))
			changes = append(changes, c)
		}
		_, res := write(t, s, WriteConfig{}, changes...)
		grown := res.Bytes - s.Size()
		t.Logf("%d records of %d bytes: grown by %d (%.3f)", n, bytes, grown, float64(grown)/float64(bytes))
		require.LessOrEqual(t, float64(grown), float64(bytes)*1.1+32<<10, "%d records", n)
	}
}
