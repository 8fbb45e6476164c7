package compact

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// steps runs several functions as the transforms of one run.
type steps []func(ctx context.Context, v *transform.View) error

func (s steps) Plan(ctx context.Context, v *transform.View) error {
	for _, step := range s {
		if err := step(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func run(t testing.TB, in string, plan transform.Transform, o transform.Options) (*transform.Report, error) {
	t.Helper()
	o.Command, o.In, o.Out = "compact", in, filepath.Join(t.TempDir(), "out.db")
	return transform.Run(t.Context(), o, plan)
}

func summary(r *transform.Report) *Summary { return transformtest.Section[Section](r).Compaction }

const story = `
grant 9 3600
put /a 1
put /b 1 lease=9
put /b 2 lease=9
del /a
put /c 1
put /c 2`

// TestServed checks that changes of earlier steps are compacted like the rest, as on a server with
// the same writes.
func TestServed(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, story)
	in := filepath.Join(t.TempDir(), "in.db")
	etcdtest.Save(t, live, in)
	before := func(ctx context.Context, v *transform.View) error {
		require.NoError(t, v.Put(ctx, []byte("/c"), []byte("3")))
		require.NoError(t, v.Create(ctx, []byte("/d"), []byte("1"), 0))
		return v.Delete(ctx, []byte("/b"))
	}
	etcdtest.Run(t, live, "put /c 3\nput /d 1\ndel /b")
	for _, keep := range []int64{5, 1, 0} {
		r, err := run(t, in, steps{before, (&Compact{Keep: keep}).Plan}, transform.Options{})
		require.NoError(t, err)
		require.Equal(t, transform.Changes{Created: 1, Updated: 1, Deleted: 1}, r.Changes)
		rev := r.Output.Revision - keep
		require.Equal(t, etcdtest.Revision(t, live), r.Output.Revision)
		require.Equal(t, []int64{rev, rev}, []int64{summary(r).Revision, summary(r).After.CompactRevision})
		require.Equal(t, []int{6, 1, 1}, []int{summary(r).Before.Records, summary(r).Before.Deletions,
			summary(r).After.Leases})
		_, err = live.Client.Compact(t.Context(), rev)
		require.NoError(t, err)
		server := etcdtest.Start(t, etcdtest.Restore(t, r.Output.Path))
		want, _, _ := etcdtest.HashKV(t, live, 0)
		got, at, compacted := etcdtest.HashKV(t, server, 0)
		require.Equal(t, []any{want, r.Output.Revision, rev}, []any{got, at, compacted})
		require.Equal(t, etcdtest.Dump(t, live, 0), etcdtest.Dump(t, server, 0))
	}
}

// TestNoSpace checks that a full store, from a snapshot or the file of a member that does not
// start, accepts writes again under the same quota.
func TestNoSpace(t *testing.T) {
	small := func(c *embed.Config) { c.QuotaBackendBytes = 3 << 20 }
	dir := filepath.Join(t.TempDir(), "full")
	full := etcdtest.Start(t, dir, small)
	put := func(s *etcdtest.Server) error {
		_, err := s.Client.Put(t.Context(), "/key", string(etcdtest.Blob("/key", 200_000)))
		return err
	}
	var err error
	for err == nil {
		err = put(full)
	}
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	saved, raw := filepath.Join(t.TempDir(), "full.db"), filepath.Join(t.TempDir(), "db")
	etcdtest.Save(t, full, saved)
	full.Stop()
	bytes, err := os.ReadFile(filepath.Join(dir, "member", "snap", "db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(raw, bytes, 0o600))

	for _, in := range []string{saved, raw} {
		r, err := run(t, in, &Compact{}, transform.Options{})
		require.NoError(t, err)
		require.Contains(t, strings.Join(r.Steps, "\n"), "takes no writes")
		require.ErrorIs(t, put(etcdtest.Start(t, etcdtest.Restore(t, r.Output.Path), small)), rpctypes.ErrNoSpace)

		r, err = run(t, in, &Compact{Disarm: true}, transform.Options{})
		require.NoError(t, err)
		require.Less(t, r.Output.Bytes, int64(300_000))
		require.Equal(t, snapshot.AlarmNoSpace, summary(r).Before.Alarms[0].Kind)
		require.Empty(t, summary(r).After.Alarms)
		server := etcdtest.Start(t, etcdtest.Restore(t, r.Output.Path), small)
		for range 5 {
			require.NoError(t, put(server))
		}
	}
}

// TestAlready checks that the requested revisions must exist; with --allow, the file keeps its
// history.
func TestAlready(t *testing.T) {
	in := etcdtest.Build(t, story+"\ncompact 5\nput /c 3")
	r, err := run(t, in, &Compact{Keep: 4}, transform.Options{})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, codeAlready, r.Problems[0].Code)
	require.Contains(t, r.Problems[0].Reason, "the file keeps revisions 5 to 8: --keep-revisions 3 is the most")
	allowed, err := run(t, in, &Compact{Keep: 4}, transform.Options{Allow: []string{codeAlready.Name}})
	require.NoError(t, err)
	require.Equal(t, finding.WentOn, allowed.Problems[0].Outcome)
	most, err := run(t, in, &Compact{Keep: 3}, transform.Options{})
	require.NoError(t, err)
	require.Equal(t, most.Output.SHA256, allowed.Output.SHA256)
	require.Equal(t, int64(5), summary(most).After.CompactRevision)

	never := etcdtest.Build(t, story)
	r, err = run(t, never, &Compact{Keep: 7}, transform.Options{Allow: []string{codeAlready.Name}})
	require.NoError(t, err)
	require.Zero(t, summary(r).After.CompactRevision)
	require.Equal(t, 6, summary(r).After.Records)
}

// TestAgain checks that a second run changes nothing, a dry run reports the planned result, and a
// report without an output has no output numbers.
func TestAgain(t *testing.T) {
	in := etcdtest.Build(t, story)
	first, err := run(t, in, &Compact{}, transform.Options{})
	require.NoError(t, err)
	second, err := run(t, first.Output.Path, &Compact{}, transform.Options{})
	require.NoError(t, err)
	require.Equal(t, transform.Unchanged, second.Outcome)
	require.Equal(t, first.Output.SHA256, second.Output.SHA256)
	dry, err := run(t, in, &Compact{Keep: 2}, transform.Options{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, int64(5), summary(dry).Revision)
	require.Nil(t, summary(dry).After)
	require.Len(t, transformtest.Section[Section](dry).Tables(transform.Planned), 1)
	require.Empty(t, new(Section).Tables(transform.Written))
}
