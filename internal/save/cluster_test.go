package save

import (
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

	// A follower is taken, never the learner.
	o, l := told(to(urls...))
	r, err := Run(t.Context(), filepath.Join(dir, "a.db"), o)
	require.NoError(t, err)
	require.False(t, r.Member.Leader)
	require.Regexp(t, "^m[012]$", r.Member.Name)
	require.Len(t, r.Refused, 1)
	require.ErrorIs(t, r.Refused[0].err, ErrLearner)
	require.Contains(t, l.String(), "saving member "+r.Member.Name+" ("+r.Member.ID+") at "+r.Member.Endpoint+": etcd 3.7.3, revision ")
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

// An endpoint that accepts connections and never answers is given up.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := to(l.Addr().String())
	o.Etcd.DialTimeout = 200 * time.Millisecond
	_, err = Run(t.Context(), filepath.Join(t.TempDir(), "out.db"), o)
	require.ErrorContains(t, err, "no answer within 200ms")
}
