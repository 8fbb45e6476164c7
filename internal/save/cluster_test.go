package save

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

func TestCluster(t *testing.T) {
	cluster := etcdtest.StartCluster(t, 3)
	etcdtest.Run(t, cluster[0], story)
	learner := etcdtest.AddLearner(t, cluster)
	urls := []string{learner.URL}
	for _, m := range cluster {
		urls = append(urls, m.URL)
	}
	dir := t.TempDir()

	// A follower is chosen, never the learner.
	o, l := withLog(to(urls...))
	r, err := Run(t.Context(), filepath.Join(dir, "a.db"), o)
	require.NoError(t, err)
	require.False(t, r.Member.Leader)
	require.Regexp(t, "^m[012]$", r.Member.Name)
	require.Len(t, r.Refused, 1)
	require.ErrorIs(t, r.Refused[0].err, ErrLearner)
	require.Contains(t, l.String(), "saving member "+r.Member.Name+" ("+r.Member.ID+") at "+r.Member.Endpoint+
		": etcd 3.7.3, revision ")
	want := etcdtest.Dump(t, cluster[0], 0)
	require.Equal(t, want, etcdtest.Dump(t, etcdtest.Start(t, etcdtest.Restore(t, filepath.Join(dir, "a.db"))), 0))
	_, err = Run(t.Context(), filepath.Join(dir, "learner.db"), to(learner.URL))
	require.ErrorIs(t, err, ErrLearner)

	// A stopped member is refused.
	cluster[0].Stop()
	require.Eventually(t, func() bool {
		r, err = Run(t.Context(), filepath.Join(dir, "b.db"), to(urls...))
		return err == nil
	}, 20*time.Second, 100*time.Millisecond, "%v", err)
	require.NotEqual(t, cluster[0].URL, r.Member.Endpoint)
	require.Len(t, r.Refused, 2)

	// Without a quorum there is no leader.
	cluster[1].Stop()
	require.Eventually(t, func() bool {
		_, err = Run(t.Context(), filepath.Join(dir, "c.db"), to(urls...))
		return strings.Contains(err.Error(), ErrNoLeader.Error())
	}, 20*time.Second, 100*time.Millisecond, "%v", err)
	require.ErrorIs(t, err, ErrNoLeader)
	left(t, dir, "a.db", "b.db")
}

// TestUpToDate checks that writes through one member are in the snapshot of another, and that a
// member without a connection to its leader is not chosen.
func TestUpToDate(t *testing.T) {
	cluster := etcdtest.StartCluster(t, 3)
	for i := range 10 {
		etcdtest.Run(t, cluster[i%3], fmt.Sprintf("put /registry/%d size=100000", i))
		o := to(cluster[(i+1)%3].URL)
		r, err := Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.Revision, int64(i+2))
	}

	dir, alone := t.TempDir(), startFake(t, cluster[0], fake{alone: true})
	o := to(alone, cluster[1].URL)
	o.Etcd.DialTimeout = time.Second
	r, err := Run(t.Context(), filepath.Join(dir, "out.db"), o)
	require.NoError(t, err)
	require.Equal(t, cluster[1].URL, r.Member.Endpoint)
	if len(r.Failed) > 0 { // otherwise the leader was tried first
		require.Equal(t, "it does not catch up with its leader: no answer within 1s", r.Failed[0].Reason)
	}
	o = to(alone)
	o.Etcd.DialTimeout = 200 * time.Millisecond
	_, err = Run(t.Context(), filepath.Join(dir, "alone.db"), o)
	require.EqualError(t, err, "no snapshot was taken\n"+alone+
		": it does not catch up with its leader: no answer within 200ms")
	left(t, dir, "out.db")
}

// TestOldRefusal checks that the refusal of a download by etcd 3.4 and 3.5, which differs from
// later versions, causes no retry.
func TestOldRefusal(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	old := startFake(t, server, fake{old: true})
	o, l := withLog(to(old))
	_, err := Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
	require.EqualError(t, err, "no snapshot was taken\n"+old+": no download: auth: user name is empty")
	require.Equal(t, 1, strings.Count(l.String(), "saving"))
}

// An endpoint that accepts connections but never answers is abandoned.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := to(l.Addr().String())
	o.Etcd.DialTimeout = 200 * time.Millisecond
	_, err = Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
	require.ErrorContains(t, err, "no answer within 200ms")
}
