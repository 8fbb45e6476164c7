package snapshot

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLivePrefix: a scan of any prefix yields what a scan of all yields that begins with it, in the
// same order.
func TestLivePrefix(t *testing.T) {
	s := open(t, gunzip(t, "calico/before.db"))
	changes := []Change{put("compact_rev_key", "1"), put("//", "2"), put("/registry/", "3"), put("/", "4"), put("a", "5"), put("/"+strings.Repeat("x", maxFolderSize)+"/y/z", "6")}
	path, _ := write(t, s, WriteConfig{}, changes...)
	s = open(t, path)
	var all []string
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		all = append(all, string(rec.Key))
	}
	prefixes := map[string]bool{"absent": true, "/registry/crd.projectcalico.org/": true}
	for _, key := range all {
		for n := range len(key) + 1 {
			prefixes[key[:n]] = true
		}
	}
	for prefix := range prefixes {
		var want, got []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		for rec, err := range s.Live(context.Background(), []byte(prefix)) {
			require.NoError(t, err)
			got = append(got, string(rec.Key))
		}
		require.Equal(t, want, got, "%q", prefix)
	}
}

// TestMarked: marked are the live records that Mark chose before the index was built.
func TestMarked(t *testing.T) {
	path := built(t, "put /a 1\nput /b 1\nput /bb 1\nput /b 2\ndel /bb")
	marked := func(s *Snapshot) (found []string) {
		for rec, err := range s.Marked(t.Context()) {
			require.NoError(t, err)
			found = append(found, string(rec.Key)+" "+string(rec.Value))
		}
		return found
	}
	s := open(t, copyOf(t, path))
	s.Mark(func(key []byte) bool { return strings.HasPrefix(string(key), "/b") })
	require.Equal(t, []string{"/b 2"}, marked(s))
	s.Mark(func([]byte) bool { return false })
	require.Equal(t, []string{"/b 2"}, marked(s), "it is too late")
	require.Equal(t, []string{"/a 1", "/b 2"}, marked(open(t, copyOf(t, path))), "without Mark")
}

// TestManyFolders: beyond what can be counted, folders share the one that every scan looks into.
func TestManyFolders(t *testing.T) {
	f := newFolders()
	f.of = make([]uint16, math.MaxUint16+10)
	for i := range f.of {
		f.put(uint32(i), fmt.Appendf(nil, "/a/%d/x", i))
	}
	require.Len(t, f.names, math.MaxUint16)
	may := f.under([]byte("/a/65540/"))
	require.True(t, may(65540))
	require.False(t, may(7))
	require.True(t, f.under([]byte("/a/7/"))(7))
}
