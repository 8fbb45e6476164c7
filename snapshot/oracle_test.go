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
)

// answer is what a server printed for: get "" --prefix -w json.
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

// TestLatestRecord compares reading with what a server of each release answered at the moment of
// its snapshot.
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

// TestRecordedCalico reads the recorded cluster and its digest.
func TestRecordedCalico(t *testing.T) {
	path := gunzip(t, "calico/before.db")
	untouched(t, path)
	s := open(t, path)
	st := must(s.Status(context.Background()))(t)
	require.Equal(t, "ok", st.Digest)
	n := 0
	for rec, err := range s.Live(context.Background(), []byte("/registry/crd.projectcalico.org/")) {
		require.NoError(t, err)
		require.False(t, rec.Tombstone)
		n++
	}
	require.Equal(t, 63, n, "62 migrated records and ClusterInformation")
	must(json.Marshal(st))(t)
}
