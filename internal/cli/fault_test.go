package cli

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/snapshot"
)

// TestCutShort: truncating a file while its values are read causes an error, not a crash.
func TestCutShort(t *testing.T) {
	path := recordedFile(t, t.TempDir(), "etcd/etcd-3.7.db", "in.db")
	read := &cli.Command{Name: "read", Action: func(c *cli.Context) error {
		s, err := snapshot.Open(c.Context, path, snapshot.Config{})
		require.NoError(t, err)
		defer s.Close()
		var values [][]byte
		for rec, err := range s.Live(c.Context, nil) {
			require.NoError(t, err)
			values = append(values, rec.Value)
		}
		require.NoError(t, os.Truncate(path, 0))
		n := 0
		for _, v := range values {
			n += bytes.Count(v, []byte("x"))
		}
		t.Errorf("read %d bytes of a file that is gone", n)
		return nil
	}}
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, runCommands(context.Background(), []*cli.Command{read}, []string{"etcdshift", "read"},
		nil, &stderr, &stderr))
	require.Contains(t, stderr.String(), "changed while it was read")
	require.Contains(t, stderr.String(), "hint: something writes to the file")
}
