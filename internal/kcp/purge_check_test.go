package kcp_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// meddled is a purge with something wrong in its plan.
type meddled struct {
	*purge.Purge
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
			out, p := filepath.Join(t.TempDir(), "out.db"), &purge.Purge{Name: kcptest.Consumer}
			_, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Allow: finding.Allowable(purge.Spec.Codes)},
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
