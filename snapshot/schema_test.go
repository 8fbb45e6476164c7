package snapshot

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Reactions of etcd to an entry.
const (
	entryRead     = "read"
	entryAccepted = "accepted"
	entryFatal    = "fatal"
)

// entryCase is an entry of a bucket.
type entryCase struct {
	bucket, key string
	value       []byte
	want        string
}

func entryCases() []entryCase {
	user := mvcc.AppendBytes(nil, 1, []byte("alice"))
	permission := mvcc.AppendBytes(mvcc.AppendInt(nil, 1, 2), 2, []byte("/a"))
	return []entryCase{
		{"meta", "consistent_index", []byte{0, 0, 0, 0, 0, 0, 0, 9}, entryRead},
		{"meta", "consistent_index", []byte("x"), entryAccepted},
		{"meta", "term", nil, entryAccepted},
		{"meta", "confState", []byte(`{"voters":[1],"auto_leave":false}`), entryRead},
		{"meta", "confState", []byte(`{"voters":"x"}`), entryAccepted},
		{"meta", "storageVersion", []byte("3.7.0"), entryRead},
		{"meta", "storageVersion", []byte("3.8.0"), entryAccepted},
		{"meta", "storageVersion", []byte("x"), entryAccepted},
		{"meta", "storageVersion", []byte("3.3.0"), entryFatal},
		{"meta", "finishedCompactRev", mvcc.AppendRevisionKey(nil, Revision{Main: 7}, false), entryRead},
		{"meta", "finishedCompactRev", nil, entryFatal},
		{"meta", "scheduledCompactRev", []byte("1234567812345678"), entryFatal},
		{"meta", "anything", []byte("else"), entryRead},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 7, 16, 60}, entryRead},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 8, 16, 60}, entryAccepted},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 7}, entryAccepted},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{10, 1, 7}, entryFatal},
		{"alarm", "\x08\x07\x10\x01", nil, entryAccepted},
		{"alarm", "\x08\x07", nil, entryRead},
		{"alarm", "\x08", nil, entryFatal},
		{"alarm", "\x0a\x01x", nil, entryFatal},
		{"auth", "authRevision", []byte{0, 0, 0, 0, 0, 0, 0, 9}, entryRead},
		{"auth", "authRevision", []byte{9}, entryFatal},
		{"auth", "authEnabled", []byte{1}, entryRead},
		{"auth", "authEnabled", []byte("true"), entryAccepted},
		{"authUsers", "alice", mvcc.AppendBytes(mvcc.AppendBytes(user, 3, []byte("root")), 4, []byte{8, 1}), entryRead},
		{"authUsers", "alice", mvcc.AppendBytes(user, 3, []byte{0xff}), entryFatal},
		{"authUsers", "alice", mvcc.AppendBytes(user, 4, []byte{8}), entryFatal},
		{"authUsers", "alice", []byte("alice"), entryFatal},
		{"authRoles", "r", mvcc.AppendBytes(nil, 2, permission), entryRead},
		{"authRoles", "r", mvcc.AppendBytes(nil, 2, []byte{0x0a, 0x00}), entryFatal},
		{"authRoles", "r", []byte{0xff}, entryFatal},
		{"authRoles", "r\xff", user, entryAccepted},
		{"authRoles", "r", mvcc.AppendBytes(nil, 1, []byte{0xff}), entryAccepted},
		{"members", "8e9e05c52164694d", []byte(`{"id":1,"peerURLs":["http://a"],"name":"a"}`), entryRead},
		{"members", "8e9e05c52164694d", []byte(`{`), entryAccepted},
		{"members", "x", []byte(`{"name":"a"}`), entryFatal},
		{"members_removed", "8e9e05c52164694d", []byte("removed"), entryRead},
		{"members_removed", "", []byte("removed"), entryFatal},
		{"cluster", "clusterVersion", []byte("3.6.0"), entryRead},
		{"cluster", "clusterVersion", []byte("3.6.0-rc.1+x"), entryRead},
		{"cluster", "clusterVersion", []byte("3.6.0-rc_1"), entryFatal},
		{"cluster", "clusterVersion", []byte("3.8.0"), entryAccepted},
		{"cluster", "clusterVersion", nil, entryFatal},
		{"cluster", "downgrade", []byte(`{"target-version":"","enabled":false}`), entryRead},
		{"cluster", "downgrade", []byte(`{"target-version":"","enabled":true}`), entryFatal},
		{"cluster", "downgrade", []byte(`[]`), entryFatal},
	}
}

// TestEntries checks the effect of an entry in each bucket on etcd: reads, accepts, or dies.
func TestEntries(t *testing.T) {
	tests := entryCases()
	seen := map[string]bool{}
	for _, tt := range tests {
		seen[tt.bucket] = true
		b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte(tt.bucket))
			if tt.key != "" {
				return bucket.Put([]byte(tt.key), tt.value)
			}
			return bucket.Put([]byte("-"), tt.value)
		})
		s := open(t, copyOf(t, b))
		got := entryRead
		for range Odd(t.Context(), s) {
			got = entryAccepted
		}
		for _, err := range findings(t, s) {
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, `bucket "`+tt.bucket+`"`)
			got = entryFatal
		}
		require.Equal(t, tt.want, got, "%s %q %q", tt.bucket, tt.key, tt.value)
		require.Equal(t, tt.want == entryFatal, s.Sound(t.Context()) != nil)
	}
	require.ElementsMatch(t, smallBuckets(), slices.Collect(maps.Keys(seen)))
}
