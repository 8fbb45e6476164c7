package snapshot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

func findings(t testing.TB, s *Snapshot) (out []error) {
	t.Helper()
	for err := range Verify(context.Background(), s) {
		out = append(out, err)
	}
	return out
}

// TestVerifyRecordings checks that recordings of real servers have no findings.
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
		return &Record{Revision: Revision{Main: main}, ModRevision: main, CreateRevision: create, Version: version,
			Key: []byte("k")}
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
		{"mod_revision of another", nil, &Record{Revision: Revision{Main: 5}, ModRevision: 4, CreateRevision: 4,
			Version: 1, Key: []byte("k")}, "mod_revision is 4"},
		{"tombstone with a value", nil, &Record{Tombstone: true, Value: []byte("x"), Key: []byte("k")},
			"more than its key"},
		{"no key", nil, &Record{Value: []byte("x")}, "without a key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := mvcc.CheckRecord(tt.before, tt.rec)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// answer is a server's output of: get "" --prefix -w json.
type answer struct {
	Header struct {
		Revision int64 `json:"revision"`
	} `json:"header"`
	Kvs []struct {
		Key            string `json:"key"`
		CreateRevision int64  `json:"create_revision"`
		ModRevision    int64  `json:"mod_revision"`
		Version        int64  `json:"version"`
		Value          string `json:"value"`
		Lease          int64  `json:"lease"`
	} `json:"kvs"`
}

// TestLatestRecord compares reading with the answers of a server of each release, recorded with its
// snapshot.
func TestLatestRecord(t *testing.T) {
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		t.Run(release, func(t *testing.T) {
			path := filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db")
			untouched(t, path)
			b := must(os.ReadFile(strings.TrimSuffix(path, ".db") + ".json"))(t)
			var want answer
			require.NoError(t, json.Unmarshal(b, &want))
			require.NotEmpty(t, want.Kvs)

			s := open(t, path)
			ctx := context.Background()
			rev := must(s.Revision(ctx))(t)
			require.Equal(t, want.Header.Revision, rev)
			var got []Record
			for rec, err := range s.Live(ctx, nil) {
				require.NoError(t, err)
				got = append(got, *rec)
			}
			slices.SortFunc(got, func(a, b Record) int { return strings.Compare(string(a.Key), string(b.Key)) })
			require.Len(t, got, len(want.Kvs))
			for i, kv := range want.Kvs {
				require.Equal(t, kv.Key, base64.StdEncoding.EncodeToString(got[i].Key))
				require.Equal(t, kv.Value, base64.StdEncoding.EncodeToString(got[i].Value), "%s", got[i].Key)
				require.Equal(t, []int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease},
					[]int64{got[i].CreateRevision, got[i].ModRevision, got[i].Version, got[i].Lease}, "%s", got[i].Key)
				one := must(s.Get(ctx, got[i].Key))(t)
				require.Equal(t, got[i], *one)
			}
			st := must(s.Status(ctx))(t)
			require.Equal(t, len(want.Kvs), st.Keys)
			require.Equal(t, "ok", st.Digest)
			require.Equal(t, release, strings.TrimSuffix(strings.TrimSuffix(st.EtcdVersion, ".0"), " or older"))
			require.Equal(t, int64(27), st.CompactRevision)
			t.Log(strconv.Itoa(st.Records), st.Hash, st.FreePages)
		})
	}
}
