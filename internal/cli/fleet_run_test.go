package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/transform"
)

// TestTwoPods: of two pods with the same index in a folder, the second finds the output of the
// first and ends with its status, not as a permanent failure.
func TestTwoPods(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("b", 0o700))
	require.NoError(t, os.WriteFile("b/a.db", []byte("x"), 0o600))
	f, err := fleet.List(t.Context(), "b", fleet.Choice{Name: "x"}, transform.Tool{})
	require.NoError(t, err)
	task, err := f.Task(0, []string{"run", "plan.yaml", "{in}", "{result}.db", "--report", "{result}.json"})
	require.NoError(t, err)
	c := cli.NewContext(&cli.App{ErrWriter: &bytes.Buffer{}}, flag.NewFlagSet("x", flag.ContinueOnError), nil)
	c.Context = t.Context()
	exists := fmt.Errorf("%w: b/a.db.fleet-x.db", fs.ErrExist)
	for outcome, want := range map[transform.Outcome]int{"": exitRefused, transform.Written: exitDone,
		transform.Refused: exitRefused} {
		if outcome != "" {
			report := fmt.Sprintf(
				`{"apiVersion":"etcdshift/v1","kind":"Report","outcome":%q,"etag":%q,"input":{"path":"b/a.db",`+
					`"bytes":1}}`,
				outcome, task.Snapshot.ETag)
			require.NoError(t, os.WriteFile(task.Last, []byte(report), 0o600))
		}
		require.Equal(t, want, finish(taskStatus(c, task, transform.Failed, false, exists), io.Discard), outcome)
		// the report exists despite the error
		uncertain := fmt.Errorf("report: %w; the run: refused", s3.ErrUncertain)
		if outcome == "" {
			want = exitFailed
		}
		require.Equal(t, want, finish(taskStatus(c, task, "", false, uncertain), io.Discard), outcome)
		require.NoError(t, os.RemoveAll(task.Last))
	}
}

// TestLasting: an object that is too large stays too large on retry.
func TestLasting(t *testing.T) {
	require.True(t, isPermanent(fmt.Errorf("x: %w", s3.ErrTooLarge)))
	require.False(t, isPermanent(s3.ErrBroken))
}
