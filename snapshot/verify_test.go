package snapshot

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func findings(t testing.TB, s *Snapshot) (out []error) {
	t.Helper()
	for err := range Verify(context.Background(), s) {
		out = append(out, err)
	}
	return out
}

// TestVerifyRecordings finds nothing in what real servers wrote.
func TestVerifyRecordings(t *testing.T) {
	paths := []string{gunzip(t, "calico/before.db"), gunzip(t, "calico/after.db"), gunzip(t, "calico/after-cleanup.db")}
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		paths = append(paths, filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db"))
	}
	for _, path := range paths {
		untouched(t, path)
		require.Empty(t, findings(t, open(t, path)), path)
	}
}

func TestSoundAfter(t *testing.T) {
	at := func(main, create, version int64) *Record {
		return &Record{Revision: Revision{Main: main}, ModRevision: main, CreateRevision: create, Version: version, Key: []byte("k")}
	}
	gone := &Record{Revision: Revision{Main: 8}, Tombstone: true, Key: []byte("k")}
	tests := []struct {
		name        string
		before, rec *Record
		want        string
	}{
		{"first", nil, at(5, 5, 1), ""},
		{"first after a compaction", nil, at(5, 3, 2), ""},
		{"update", at(5, 3, 2), at(9, 3, 3), ""},
		{"created again", gone, at(9, 9, 1), ""},
		{"deleted", at(5, 3, 2), gone, ""},
		{"deleted twice", gone, gone, ""},
		{"first without a version", nil, at(5, 5, 0), "do not agree"},
		{"created later than changed", nil, at(5, 6, 2), "do not agree"},
		{"version restarts", at(5, 3, 2), at(9, 9, 1), "want 3 and 3"},
		{"version skips", at(5, 3, 2), at(9, 3, 4), "want 3 and 3"},
		{"created again with an old life", gone, at(9, 3, 3), "want 9 and 1"},
		{"mod_revision of another", nil, &Record{Revision: Revision{Main: 5}, ModRevision: 4, CreateRevision: 4, Version: 1, Key: []byte("k")}, "mod_revision is 4"},
		{"tombstone with a value", nil, &Record{Tombstone: true, Value: []byte("x"), Key: []byte("k")}, "more than its key"},
		{"no key", nil, &Record{Value: []byte("x")}, "without a key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkRecord(tt.before, tt.rec)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
