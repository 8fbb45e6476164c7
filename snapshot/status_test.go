package snapshot

import (
	"context"
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

// TestStatusOfAServer: leases, auth and alarms as a real server stored them; a restored one still
// has the alarm, and takes no writes.
func TestStatusOfAServer(t *testing.T) {
	ctx := context.Background()
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "etcd"))
	etcdtest.Run(t, server, "grant 7 3600\ngrant 8 3600\nput /a x lease=7\nput /b x lease=7\nput /c x lease=8\nput /b y\nput /d x lease=8\ndel /d\nput /e x")
	for _, name := range []string{"root", "reader"} {
		must(server.Client.RoleAdd(ctx, name))(t)
	}
	must(server.Client.UserAdd(ctx, "root", "secret"))(t)
	members := must(server.Client.MemberList(ctx))(t)
	id := members.Members[0].ID
	alarm := etcdserverpb.NewMaintenanceClient(server.Client.ActiveConnection())
	_, err := alarm.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, server, path)
	st := status(t, path)
	require.Equal(t, []int{2, 2, 1, 2}, []int{st.Leases, st.LeasedKeys, st.AuthUsers, st.AuthRoles})
	require.False(t, st.AuthEnabled)
	require.Equal(t, []Raised{{AlarmNoSpace, strconv.FormatUint(id, 16)}}, st.Alarms)

	again := etcdtest.Start(t, etcdtest.Restore(t, path))
	_, err = again.Client.Put(ctx, "/a", "y")
	require.ErrorContains(t, err, "database space exceeded")
	second := filepath.Join(t.TempDir(), "second.db")
	etcdtest.Save(t, again, second)
	require.Equal(t, st.Alarms, status(t, second).Alarms)
}

// TestStatusWithoutAny: lists are there, and empty.
func TestStatusWithoutAny(t *testing.T) {
	st := status(t, copyOf(t, built(t, "put /a x")))
	require.Equal(t, []Raised{}, st.Alarms)
	require.Zero(t, st.LeasedKeys+st.AuthUsers+st.AuthRoles)
}

// TestStatusBesideEtcdutl: the hash is that of etcdutl, and so is the last record; the revision,
// where that is another, is the one that a server starts with.
func TestStatusBesideEtcdutl(t *testing.T) {
	server := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, long), etcdtest.BumpRevision(1000)))
	bumped := filepath.Join(t.TempDir(), "bumped.db")
	etcdtest.Save(t, server, bumped)
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
			require.Equal(t, strconv.FormatUint(uint64(theirs.Hash), 16), st.Hash[len(st.Hash)-len(strconv.FormatUint(uint64(theirs.Hash), 16)):])
			require.Equal(t, tt.revision, etcdtest.Revision(t, etcdtest.Start(t, etcdtest.Restore(t, tt.path))))
		})
	}
}

// TestManyAlarms: more than a cluster can have is a file made to fill memory.
func TestManyAlarms(t *testing.T) {
	b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		for i := range maxAlarms + 1 {
			if err := tx.Bucket([]byte("alarm")).Put([]byte{0x08, byte(i) | 0x80, byte(i>>7) & 0x7f, 0x10, 0x01}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	_, err := open(t, copyOf(t, b)).Status(context.Background())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "more than 512 alarms")
}
