package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/snapshot"
)

// signedSnapshot writes a snapshot, its signature and the key into the working directory.
func signedSnapshot(t *testing.T) {
	t.Helper()
	data, err := readFixture(filepath.Join(schemaFolder(), "..", "..", "testdata", "etcd", "etcd-3.7.db"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("before.db", data, 0o600))
	for _, line := range [][]string{{"sign", "--new-key", "a.key", "--no-passphrase"}, {"sign", "before.db", "--key", "a.key"}} {
		status, stdout, stderr := runWords(line...)
		require.Zero(t, status, stdout+stderr)
	}
}

// TestVerifySwapped: a file that is replaced by another sound one after its signature was checked
// is not verified.
func TestVerifySwapped(t *testing.T) {
	other, err := readFixture(filepath.Join(schemaFolder(), "..", "..", "testdata", "calico", "before.db"))
	require.NoError(t, err)
	signedSnapshot(t)
	require.NoError(t, os.WriteFile("other.db", other, 0o600))
	command := verifyCommand()
	command.Action = func(c *cli.Context) error {
		v := verification{Path: "before.db"}
		wrong, err := checkSignature(c, &v)
		require.NoError(t, errors.Join(wrong, err))
		require.NoError(t, os.Rename("other.db", "before.db"))
		_, err = verifyContent(c, &v)
		require.ErrorIs(t, err, snapshot.ErrChanged)
		return err
	}
	var said bytes.Buffer
	require.Equal(t, exitFailed, runCommands(context.Background(), []*cli.Command{command}, []string{"etcdshift", "verify", "--key", "a.pub", "before.db"}, nil, &said, &said))
	require.Contains(t, said.String(), "before.db: ")
}

// fullDevice takes no byte.
type fullDevice struct{}

func (fullDevice) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestSignOnlyPrinting: a run that could not print says that its files are there.
func TestSignOnlyPrinting(t *testing.T) {
	signedSnapshot(t)
	for _, words := range [][]string{
		{"sign", "before.db", "--key", "a.key", "--signature", "b"}, {"sign", "before.db", "--key", "a.key", "--signature", "c", "-o", "json"},
		{"sign", "--new-key", "d.key", "--no-passphrase"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, exitFailed, Run(context.Background(), append([]string{"etcdshift"}, words...), nil, fullDevice{}, &stderr))
		require.Regexp(t, `: written\)\nhint: what was asked for was written; only printing failed\n$`, stderr.String())
	}
	for _, name := range []string{"b", "c", "d.key", "d.pub"} {
		require.FileExists(t, name)
	}
}

// TestNewKeyWhole: where one of the two files of a key cannot be written, the other is not left.
func TestNewKeyWhole(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	program, err := exec.LookPath("etcdshift")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.pub", "a.key"} { // not the nth call: strace counts those of each thread
		text, err := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-P", name, "-e", "trace=linkat", "-e", "inject=linkat:error=EIO",
			program, "sign", "--new-key", "a.key", "--no-passphrase").CombinedOutput()
		require.Equal(t, exitFailed, exitOf(t, err), "%s", text)
		require.Contains(t, string(text), "input/output error")
		left, err := os.ReadDir(".")
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
