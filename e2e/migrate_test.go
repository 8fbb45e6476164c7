package e2e

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// report has the fields of a migration's report used in these tests.
type report struct {
	path    string   // path of the output
	Outcome string   `json:"outcome"`
	Restore []string `json:"restore"`
	Kinds   []struct{ Kind, From, To string }
	UIDs    []struct {
		Kind, Namespace, Name string
		Stored, Seen, Written string
	} `json:"uids"`
}

// snapshotOf unpacks a recorded snapshot.
func snapshotOf(t testing.TB, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name+".db")
	unzip(t, filepath.Join("..", "testdata", "calico", name+".db.gz"), path)
	return path
}

func unzip(t testing.TB, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// migrate runs the Calico migration as described in the guide.
func migrate(t testing.TB, in string, flags ...string) report {
	t.Helper()
	return runMigration(t, "migrate calico-v3", in, flags...)
}

// runMigration runs a command of bin/etcdshift that writes a changed snapshot.
func runMigration(t testing.TB, name, in string, flags ...string) report {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "bin", "etcdshift"))
	require.NoError(t, err)
	require.FileExists(t, program, "run make e2e in the folder above")
	dir := t.TempDir()
	reportPath, out := filepath.Join(dir, "report.json"), filepath.Join(dir, "after.db")
	args := append(strings.Fields(name), append([]string{in, out, "--report", reportPath}, flags...)...)
	said, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	text, err := os.ReadFile(reportPath)
	require.NoError(t, err)
	r := report{path: out}
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, "written", r.Outcome)
	for _, command := range r.Restore {
		require.Contains(t, string(said), command)
	}
	return r
}

// restore runs the single printed restore command with its own data directory, and returns the
// directory.
func (r report) restore(t testing.TB) (dataDir string) {
	t.Helper()
	require.Len(t, r.Restore, 1, "the recorded cluster has one member")
	const place = "--data-dir /var/lib/etcd"
	require.Equal(t, 1, strings.Count(r.Restore[0], place), r.Restore[0])
	require.Contains(t, r.Restore[0], " --bump-revision 1000000000 --mark-compacted ")
	dataDir = filepath.Join(t.TempDir(), "etcd")
	return runRestore(t, strings.Replace(r.Restore[0], place, `--data-dir "$DATA_DIR"`, 1), dataDir)
}

// restoreAsIs restores a snapshot unchanged by etcdshift, with additional flags.
func restoreAsIs(t testing.TB, path string, flags ...string) (dataDir string) {
	t.Helper()
	command := append([]string{"etcdutl", "snapshot", "restore", path, `--data-dir "$DATA_DIR"`}, flags...)
	return runRestore(t, strings.Join(command, " "), filepath.Join(t.TempDir(), "etcd"))
}

// runRestore runs an etcdutl command line in a shell.
func runRestore(t testing.TB, line, dataDir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "DATA_DIR="+dataDir, "PATH="+filepath.Dir(tool(t, "etcdutl"))+
		string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, said)
	return dataDir
}

// requireUIDs requires that each object is served with the reported UID: the UID seen by clients
// before or, with fresh, a new UID.
func (r report) requireUIDs(t testing.TB, served map[string][]unstructured.Unstructured, fresh bool) {
	t.Helper()
	uids := make(map[string]string)
	for _, objects := range served {
		for _, obj := range objects {
			uids[obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName()] = string(obj.GetUID())
		}
	}
	require.Len(t, r.UIDs, len(uids))
	old := make(map[string]bool)
	for _, uid := range r.UIDs {
		old[uid.Stored], old[uid.Seen] = true, true
	}
	for _, uid := range r.UIDs {
		name := uid.Kind + " " + uid.Namespace + "/" + uid.Name
		require.Equal(t, uid.Written, uids[name], name)
		if fresh {
			require.NotContains(t, old, uid.Written, name)
		} else {
			require.Equal(t, uid.Seen, uid.Written, name)
		}
	}
}
