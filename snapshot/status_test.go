package snapshot

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

func status(t testing.TB, path string) Status {
	t.Helper()
	st := must(open(t, path).Status(context.Background()))(t)
	return st
}

// TestStatusOfAServer checks leases, auth and alarms stored by a real server; a restored server
// still has the alarm, and accepts no writes.
func TestStatusOfAServer(t *testing.T) {
	ctx := context.Background()
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "etcd"))
	etcdtest.Run(t, server, "grant 7 3600\ngrant 8 3600\nput /a x lease=7\nput /b x lease=7\nput /c x lease=8\nput "+
		"/b y\nput /d x lease=8\ndel /d\nput /e x")
	for _, name := range []string{"root", "reader"} {
		must(server.Client.RoleAdd(ctx, name))(t)
	}
	must(server.Client.UserAdd(ctx, "root", "secret"))(t)
	members := must(server.Client.MemberList(ctx))(t)
	id := members.Members[0].ID
	alarm := etcdserverpb.NewMaintenanceClient(server.Client.ActiveConnection())
	_, err := alarm.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: id,
		Alarm: etcdserverpb.AlarmType_NOSPACE})
	require.NoError(t, err)
	path := saved(t, server)
	st := status(t, path)
	require.Equal(t, []int{2, 2, 1, 2}, []int{st.Leases, st.LeasedKeys, st.AuthUsers, st.AuthRoles})
	require.False(t, st.AuthEnabled)
	require.Equal(t, []Raised{{AlarmNoSpace, strconv.FormatUint(id, 16)}}, st.Alarms)

	again := etcdtest.Start(t, etcdtest.Restore(t, path))
	_, err = again.Client.Put(ctx, "/a", "y")
	require.ErrorContains(t, err, "database space exceeded")
	require.Equal(t, st.Alarms, status(t, saved(t, again)).Alarms)
}

// TestStatusWithoutAny checks that lists are empty, not nil.
func TestStatusWithoutAny(t *testing.T) {
	st := status(t, copyOf(t, built(t, "put /a x")))
	require.Equal(t, []Raised{}, st.Alarms)
	require.Zero(t, st.LeasedKeys+st.AuthUsers+st.AuthRoles)
}

// TestStatusBesideEtcdutl checks that the hash and the last record are those of etcdutl, and that
// the revision, if different, is the revision of a server started on the file.
func TestStatusBesideEtcdutl(t *testing.T) {
	server := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, long), etcdtest.BumpRevision(1000)))
	bumped := saved(t, server)
	for name, tt := range map[string]struct {
		path              string
		revision, etcdutl int64
	}{
		"recorded":                       {copyOf(t, fixture(t)), 33, 33},
		"empty":                          {copyOf(t, built(t, "")), 1, 0},
		"all deleted":                    {copyOf(t, built(t, "put /a x\ndel /a\nput /b x\ndel /b\ncompact")), 5, 5},
		"compacted beyond the last one":  {copyOf(t, rebuilt(t, built(t, long), 4096, compacted(100, 100))), 100, 10},
		"nothing left":                   {copyOf(t, rebuilt(t, built(t, ""), 4096, compacted(100, 100))), 100, 0},
		"a compaction that was not done": {copyOf(t, rebuilt(t, built(t, long), 4096, compacted(8, 200))), 200, 10},
		"bumped":                         {bumped, 1010, 1010},
	} {
		t.Run(name, func(t *testing.T) {
			st, theirs := status(t, tt.path), etcdtest.StatusOf(t, tt.path)
			require.Equal(t, []int64{tt.revision, tt.etcdutl}, []int64{st.Revision, st.LastRecord})
			require.Equal(t, tt.etcdutl, theirs.Revision)
			require.Equal(t, fmt.Sprintf("%08x", theirs.Hash), st.Hash)
			require.Equal(t, tt.revision, etcdtest.Revision(t, etcdtest.Start(t, etcdtest.Restore(t, tt.path))))
		})
	}
}

// TestManyAlarms checks that more alarms than a cluster can have are an error.
func TestManyAlarms(t *testing.T) {
	b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		for i := range maxAlarms + 1 {
			if err := tx.Bucket([]byte("alarm")).Put([]byte{0x08, byte(i) | 0x80, byte(i>>7) & 0x7f, 0x10, 0x01},
				nil); err != nil {
				return err
			}
		}
		return nil
	})
	_, err := open(t, copyOf(t, b)).Status(context.Background())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "more than 512 alarms")
}

// TestProgress checks that each pass adds its part, and less if it reads few leaves; passes beyond
// the expected number add nothing. A closed file has the last answer.
func TestProgress(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "in.db")
	_, err := Build(ctx, path, Content{Revision: 5000, Records: func(yield func(*Record, error) bool) {
		for i := range int64(4000) {
			rec := &Record{Key: fmt.Appendf(nil, "/registry/%d/%04d", i/100, i), Value: make([]byte, 1000),
				Revision: Revision{Main: i + 2}, CreateRevision: i + 2, ModRevision: i + 2, Version: 1}
			if !yield(rec, nil) {
				return
			}
		}
	}}, nil)
	require.NoError(t, err)
	s := must(Open(ctx, path, Config{}))(t)
	must(s.Digest(ctx))(t)
	require.Zero(t, s.Progress(1, 3))
	must(s.Keys(ctx))(t)
	require.Equal(t, 0.25, s.Progress(1, 3))
	require.Equal(t, 1.0, s.Progress(0, 0))
	for range s.Live(ctx, []byte("/registry/1/")) {
	}
	few := s.Progress(1, 3)
	require.Greater(t, few, 0.25)
	require.Less(t, few, 0.3)
	for want := few; want < 1; want = s.Progress(1, 3) {
		for range s.Live(ctx, nil) {
			require.GreaterOrEqual(t, s.Progress(1, 3), want)
		}
	}
	d := begin(t, filepath.Join(t.TempDir(), "out"), s)
	require.Zero(t, d.Progress())
	must(d.Write(ctx, seq(put("/new", "x")), WriteConfig{}))(t)
	require.Equal(t, 1.0, d.Progress())
	require.NoError(t, s.Close())
	require.Equal(t, 1.0, s.Progress(1, 3))
	require.Equal(t, 1.0, d.Progress())
}

// TestProgressOfDigest checks that without a digest only the records count.
func TestProgressOfDigest(t *testing.T) {
	for _, cfg := range []Config{{}, {SkipDigest: true}} {
		s := must(Open(t.Context(), copyOf(t, fixture(t)), cfg))(t)
		must(s.Keys(t.Context()))(t)
		must(s.Digest(t.Context()))(t)
		require.Equal(t, 1.0, s.Progress(0, 0))
		require.NoError(t, s.Close())
	}
}
