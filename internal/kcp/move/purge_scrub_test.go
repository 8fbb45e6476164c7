package move_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// storyOf is the recorded shard root in which a Secret of Consumer was written over and another one
// deleted, and one of Other too.
func storyOf(t *testing.T) (in string, secrets []string) {
	t.Helper()
	in = kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, cluster := range []string{kcptest.Consumer, kcptest.Other} {
			for _, name := range []string{"sec", "gone"} {
				key := "/registry/core/secrets/" + cluster + "/default/" + name
				for i := range 3 {
					secrets = append(secrets, fmt.Sprintf("swordfish-%s-%s-%d", cluster, name, i))
					kcptest.Put(t, client, key, fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"default"},"data":{"x":%q}}`, name, secrets[len(secrets)-1]))
				}
			}
			kcptest.Delete(t, client, "/registry/core/secrets/"+cluster+"/default/gone")
		}
	})
	return in, secrets
}

// records are copies of all records of a file.
func records(t *testing.T, path string) (all []snapshot.Record) {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for rec, err := range s.Records(ctx) {
		require.NoError(t, err)
		r := *rec
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		all = append(all, r)
	}
	return all
}

// TestNothingLeft: no key and no value of a scrubbed logical cluster, of any revision, is anywhere
// in the file; the history of all others is.
func TestNothingLeft(t *testing.T) {
	in, secrets := storyOf(t)
	require.Len(t, secrets, 12)
	holds := func(path, what string) bool {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return bytes.Contains(data, []byte(what))
	}
	_, plain := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	_, scrubbed := purged(t, in, move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
	for i, secret := range secrets {
		require.True(t, holds(in, secret))
		require.True(t, holds(plain, secret), "tombstones hide it, and remove nothing")
		require.Equal(t, i >= 6, holds(scrubbed, secret), secret)
	}

	var kept []snapshot.Record
	for _, rec := range records(t, in) {
		if clusterOf(rec.Key) != kcptest.Consumer {
			kept = append(kept, rec)
			continue
		}
		require.False(t, holds(scrubbed, string(rec.Key)), "%s", rec.Key)
		require.False(t, len(rec.Value) > 0 && holds(scrubbed, string(rec.Value)), "%s", rec.Key)
	}
	left := records(t, scrubbed)
	require.Empty(t, left[len(left)-1].Key, "holds the revision up")
	require.Equal(t, kept, left[:len(left)-1])
	requireGone(t, in, scrubbed, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer })
}

// TestScrubOrphans: the rest of the file is as it was, and a scrub of nothing leaves the file
// alone.
func TestScrubOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	r, out := purged(t, in, move.Purge{Orphans: true, Scrub: true})
	require.Equal(t, 4, r.Changes.Deleted)
	require.Equal(t, 4, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Other }))
	for _, rec := range records(t, out) {
		require.NotEqual(t, kcptest.Other, clusterOf(rec.Key))
	}
	r, again, err := tryPurge(t, out, move.Purge{Orphans: true, Scrub: true})
	require.NoError(t, err)
	require.EqualValues(t, "unchanged", r.Outcome)
	first, err := os.ReadFile(out)
	require.NoError(t, err)
	second, err := os.ReadFile(again)
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, second))
}

// TestWatch: a client that watches from before the purge sees each deletion, in the order of keys,
// each at a revision of its own.
func TestWatch(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	s := etcdtest.Start(t, etcdtest.Restore(t, out))
	defer s.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	watch := s.Client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(r.Input.Revision+1), clientv3.WithPrevKV())
	var seen []*clientv3.Event
	for len(seen) < 36 {
		answer, open := <-watch
		require.True(t, open)
		require.NoError(t, answer.Err())
		seen = append(seen, answer.Events...)
	}
	require.Len(t, seen, 36)
	for i, e := range seen {
		require.Equal(t, clientv3.EventTypeDelete, e.Type)
		require.Equal(t, kcptest.Consumer, clusterOf(e.Kv.Key))
		require.NotEmpty(t, e.PrevKv.Value)
		require.Equal(t, r.Input.Revision+1+int64(i), e.Kv.ModRevision)
		require.True(t, i == 0 || bytes.Compare(seen[i-1].Kv.Key, e.Kv.Key) < 0)
	}
	require.Equal(t, r.Output.Revision, etcdtest.Revision(t, s))
}

// TestOutputVerifies: an output is sound in the eyes of snapshot.Verify, scrubbed or not.
func TestOutputVerifies(t *testing.T) {
	ctx := context.Background()
	for _, scrub := range []bool{false, true} {
		_, out := purged(t, kcptest.Single(t), move.Purge{Name: kcptest.Consumer, WithChildren: true, Scrub: scrub}, "owner-points-here")
		s, err := snapshot.Open(ctx, out, snapshot.Config{})
		require.NoError(t, err)
		defer s.Close()
		for wrong := range snapshot.Verify(ctx, s) {
			require.NoError(t, wrong)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(out), "*"))
		require.NoError(t, err)
		require.Equal(t, []string{out}, left)
	}
}

// TestScrubGone: what is deleted already, by this program or by kcp, leaves no older record either;
// after that nothing is known of it.
func TestScrubGone(t *testing.T) {
	in, secrets := storyOf(t)
	_, plain := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	r, out := purged(t, plain, move.Purge{Name: kcptest.Consumer, Scrub: true})
	require.Zero(t, r.Changes)
	require.Zero(t, r.Clusters[0].Keys)
	requireGone(t, plain, out, func([]byte) bool { return false })
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(data), secrets[0])
	require.Contains(t, string(data), secrets[len(secrets)-1])
	for _, rec := range records(t, out) {
		require.NotEqual(t, kcptest.Consumer, clusterOf(rec.Key))
	}
	_, _, err = tryPurge(t, out, move.Purge{Name: kcptest.Consumer, Scrub: true})
	require.ErrorIs(t, err, kcp.ErrNoCluster)

	_, plain = purged(t, kcptest.Recorded(t, kcptest.Cache), move.Purge{Name: kcptest.Consumer, FromShard: "root"})
	_, out = purged(t, plain, move.Purge{Name: kcptest.Consumer, FromShard: "root", Scrub: true})
	for _, rec := range records(t, out) {
		require.False(t, copyOf("root", kcptest.Consumer)(rec.Key))
	}
	_, _, err = tryPurge(t, out, move.Purge{Name: kcptest.Consumer, FromShard: "root", Scrub: true})
	require.ErrorIs(t, err, kcp.ErrNoCluster)

	_, shard1 := kcptest.LiveMigrated(t)
	_, _, err = tryPurge(t, shard1, move.Purge{Name: kcptest.Other, Scrub: true})
	require.ErrorIs(t, err, kcp.ErrNoCluster, "it has orphans, which --orphans is for")
}

// TestScrubPastCopies: what the cache of the same file had of a logical cluster leaves no record
// either, though it is deleted already; what another shard wrote stays and is named.
func TestScrubPastCopies(t *testing.T) {
	_, plain := purged(t, kcptest.Single(t), move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	others := "/cache/rbac.authorization.k8s.io/clusterroles/customresources/shard-1/" + kcptest.Consumer + "/stale"
	cacheGone := kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kvs, err := client.Get(context.Background(), "/cache/", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range kvs.Kvs {
			if copyOf("root", kcptest.Consumer)(kv.Key) {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
		kcptest.Put(t, client, others, []byte("{}"))
		kcptest.Delete(t, client, others)
	})
	for name, in := range map[string]string{"all deleted": plain, "copies deleted": cacheGone} {
		t.Run(name, func(t *testing.T) {
			r, out := purged(t, in, move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
			left := 0
			for _, rec := range records(t, out) {
				require.False(t, clusterOf(rec.Key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(rec.Key), "%s", rec.Key)
				if string(rec.Key) == others {
					left++
				}
			}
			step := `keeps older records of what shard "shard-1" wrote of "` + kcptest.Consumer + `"`
			if name == "copies deleted" {
				require.Equal(t, 2, left)
				require.Contains(t, strings.Join(r.Steps, "\n"), step)
			}
		})
	}

	nameless := kcptest.Edit(t, cacheGone, func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey("system:shard"))
	})
	_, _, err := tryPurge(t, nameless, move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
	require.ErrorIs(t, err, move.ErrShardUnknown, "whose copies they were cannot be told")
	purged(t, nameless, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
}

// TestScrubPastOrphans: orphans that are deleted already cannot be told from what lived here: that
// is said, and by whose names they go.
func TestScrubPastOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	_, plain := purged(t, in, move.Purge{Orphans: true})
	r, _ := purgeUnchanged(t, plain, move.Purge{Orphans: true, Scrub: true})
	steps := strings.Join(r.Steps, "\n")
	require.Contains(t, steps, "etcdshift kcp purge NAME SHARD OUT --scrub takes them out, of each: "+kcptest.Other)
	_, scrubbed := purged(t, plain, move.Purge{Name: kcptest.Other, Scrub: true})
	r, _ = purgeUnchanged(t, scrubbed, move.Purge{Orphans: true, Scrub: true})
	require.NotContains(t, strings.Join(r.Steps, "\n"), "--scrub")
}

// purgeUnchanged is a purge that has nothing to do.
func purgeUnchanged(t *testing.T, in string, o move.Purge) (*report, string) {
	t.Helper()
	r, out, err := tryPurge(t, in, o)
	require.NoError(t, err)
	require.Equal(t, transform.Unchanged, r.Outcome)
	return r, out
}

// meddled is a purge with something wrong in its plan.
type meddled struct {
	*move.Purge
	wrong func(ctx context.Context, v *transform.View) error
}

func (m meddled) Plan(ctx context.Context, v *transform.View) error {
	if err := m.Purge.Plan(ctx, v); err != nil {
		return err
	}
	return m.wrong(ctx, v)
}

// TestRestUntouched: an output that has lost, changed or kept anything it should not never gets its
// name.
func TestRestUntouched(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	own, others := "/registry/core/configmaps/"+kcptest.Consumer+"/default/settings", "/registry/core/configmaps/"+kcptest.Other+"/default/settings"
	for name, c := range map[string]struct {
		wrong func(ctx context.Context, v *transform.View) error
		says  string
	}{
		"one too many": {func(ctx context.Context, v *transform.View) error { return v.Delete(ctx, []byte(others)) }, "all other live records"},
		"one changed": {func(ctx context.Context, v *transform.View) error {
			return v.Put(ctx, []byte(others), []byte("{}"))
		}, "all other live records"},
		"one too few": {func(ctx context.Context, v *transform.View) error { return v.Put(ctx, []byte(own), []byte("{}")) }, "of what was purged 1 key left"},
		"history":     {func(context.Context, *transform.View) error { return nil }, "is left"},
	} {
		t.Run(name, func(t *testing.T) {
			out, p := filepath.Join(t.TempDir(), "out.db"), &move.Purge{Name: kcptest.Consumer}
			_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Allow: finding.Allowable(move.PurgeSpec.Codes)},
				meddled{p, func(ctx context.Context, v *transform.View) error {
					p.Scrub = name == "history" // the check looks for it, and nothing was scrubbed
					return c.wrong(ctx, v)
				}})
			require.ErrorContains(t, err, c.says)
			require.NoFileExists(t, out)
			require.ErrorIs(t, err, snapshot.ErrVerify)
		})
	}
}
