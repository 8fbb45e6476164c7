package purge

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// forgetting is a purge that forgets, before it writes, that the records of a place are to go.
type forgetting struct {
	*Purge
	of survey.Place
}

func (f forgetting) Plan(ctx context.Context, v *transform.View) error {
	c, err := f.choose(ctx, v)
	if err == nil {
		c.plan()
		err = c.Err
		delete(c.Places, f.of)
	}
	return err
}

// TestScrubProved: the proof of a scrub does not ask the purge what it took for the logical
// cluster's.
func TestScrubProved(t *testing.T) {
	in := filepath.Join(t.TempDir(), "purged.db")
	_, err := transform.Run(context.Background(), transform.Options{In: kcptest.Single(t), Out: in, Allow: finding.Allowable(codes())},
		&Purge{Name: kcptest.Consumer})
	require.NoError(t, err)
	for _, at := range []survey.Place{{Prefix: "/cache", Shard: "root", Cluster: kcptest.Consumer}, {Prefix: "/registry", Cluster: kcptest.Consumer}} {
		p, out := &Purge{Name: kcptest.Consumer, Scrub: true}, filepath.Join(t.TempDir(), "out.db")
		_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out}, forgetting{p, at})
		require.ErrorIs(t, err, snapshot.ErrVerify)
		require.ErrorContains(t, err, "is left")
		require.NoFileExists(t, out)
	}
}
