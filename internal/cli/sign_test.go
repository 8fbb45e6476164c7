package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/snapshot"
)

// signedSnapshot creates a working directory with a snapshot, its signature, the keys and another
// snapshot.
func signedSnapshot(t *testing.T) {
	t.Helper()
	fixtureFiles(t, "etcd/etcd-3.7", "calico/before")
	require.NoError(t, os.Rename("before.db", "other.db"))
	require.NoError(t, os.Rename("etcd-3.7.db", "before.db"))
	status, stdout, stderr := runWords("sign", "before.db", "--key", "backup.key")
	require.Zero(t, status, stdout+stderr)
}

// testKeys copies the recorded key pair into a folder.
func testKeys(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"backup.key", "backup.pub"} {
		text, err := os.ReadFile(testdata("minisign", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// TestVerifySwapped: a file replaced by another sound one after the check of its signature is not
// verified.
func TestVerifySwapped(t *testing.T) {
	signedSnapshot(t)
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
	require.Equal(t, exitFailed, runCommands(context.Background(), []*cli.Command{command},
		[]string{"etcdshift", "verify", "--key", "backup.pub", "before.db"}, nil, &said, &said))
	require.Contains(t, said.String(), "before.db: ")
}

// TestSignOnlyPrinting: a run that fails to print reports its written files.
func TestSignOnlyPrinting(t *testing.T) {
	signedSnapshot(t)
	for _, words := range [][]string{
		{"sign", "before.db", "--key", "backup.key", "--signature", "b"},
		{"sign", "before.db", "--key", "backup.key", "--signature", "c", "-o", "json"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, exitFailed, Run(context.Background(), append([]string{"etcdshift"}, words...), nil,
			broken{}, &stderr))
		require.Regexp(t, `: written\)\nhint: the file was written; only printing failed\n$`, stderr.String())
	}
	for _, name := range []string{"b", "c"} {
		require.FileExists(t, name)
	}
}
