package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestComparingFails: what could not be printed, and what was interrupted, is neither "no
// difference" nor "differences".
func TestComparingFails(t *testing.T) {
	old, new := fixtureFile(t), filepath.Join("..", "..", "testdata", "etcd", "etcd-3.7.db")
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"diff", old, new}, exitCannotCheck},
		{[]string{"diff", "-o", "json", old, new}, exitCannotCheck},
		{[]string{"diff", "-o", "jsonl", old, new}, exitCannotCheck},
		{[]string{"history", new, "cm/updated"}, exitFailed},
		{[]string{"history", "-o", "json", new, "cm/updated"}, exitFailed},
		{[]string{"history", "-o", "jsonl", new, "cm/updated"}, exitFailed},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"etcdshift"}, c.args...)
		require.Equal(t, c.status, Run(context.Background(), args, nil, broken{}, &stderr), args)
		require.Contains(t, stderr.String(), "no pipe", args)

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		stderr.Reset()
		require.Equal(t, exitInterrupted, Run(ctx, args, nil, &stdout, &stderr), args)
	}
}
