package transform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// TestDryRunFindsDamage checks that a dry run fails for an input whose damage fails the writing
// run.
func TestDryRunFindsDamage(t *testing.T) {
	f := input(t)
	data, err := os.ReadFile(f.in)
	require.NoError(t, err)
	// The stored revision of the record of /leased becomes wrong: the byte before version and
	// value. If etcd committed between writes, as on a slow machine, a free page has the same
	// bytes.
	record := []byte("\x20\x01\x2a\x01x")
	require.True(t, bytes.Contains(data, record))
	for at := range len(data) {
		if bytes.HasPrefix(data[at:], record) {
			data[at-1]++
		}
	}
	image := len(data) - sha256.Size
	sum := sha256.Sum256(data[:image])
	copy(data[image:], sum[:])
	in := filepath.Join(t.TempDir(), "odd.db")
	require.NoError(t, os.WriteFile(in, data, 0o600))

	put := planFunc(func(ctx context.Context, v *View) error { return v.Put(ctx, []byte("/b"), []byte("changed")) })
	for _, dry := range []bool{false, true} {
		r, err := Run(context.Background(), Options{In: in, Out: f.out, DryRun: dry}, put)
		require.ErrorIs(t, err, snapshot.ErrDamaged, dry)
		require.ErrorContains(t, err, "/leased")
		require.Equal(t, Failed, r.Outcome)
		noOutput(t, f)
	}
}
