package transform

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// hostileWords returns words that are harmful in a shell or on a terminal if not quoted.
func hostileWords() []string {
	return []string{
		"node-1", "with space", "$(touch PWN)", "`touch PWN`", "'; touch PWN; '", `"; touch PWN; "`, "a\n touch PWN\n",
		"$HOME", "*", "~", "#x", "!!",
		"a'; touch PWN; '\nx\x1b[31m", "\x1b]0;$(touch PWN)\x07", `\'; touch PWN; '`, "x\u202e$(touch PWN)",
		"\xff$(touch PWN)", "-rf", "", "ä", "a\x00b",
	}
}

// runLine runs the line in sh with stubs for all commands of etcd and Kubernetes, and returns the
// words that a stub received.
func runLine(t *testing.T, line string) (words []string) {
	t.Helper()
	dir := t.TempDir()
	stand := "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\0' \"$word\"; done > \"$WORDS\"\n"
	for _, name := range []string{"etcdutl", "etcdshift", "kubectl"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(stand), 0o755))
	}
	work := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "WORDS=" + filepath.Join(dir, "words"), "HOME=/nowhere"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
	left, err := os.ReadDir(work)
	require.NoError(t, err)
	require.Empty(t, left, "running the line ran what a name says: %s", line)
	b, err := os.ReadFile(filepath.Join(dir, "words"))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// TestShellWordRuns checks that a line with any word runs, with the word as one argument; an
// unprintable word becomes another, harmless word.
func TestShellWordRuns(t *testing.T) {
	for _, s := range hostileWords() {
		word := ShellWord(s)
		require.True(t, isPrintable(word), "%q", word)
		got := runLine(t, "etcdutl snapshot restore "+word+" end")
		require.Len(t, got, 4, "%q", s)
		if isPrintable(s) && !strings.HasPrefix(s, "-") {
			require.Equal(t, s, got[2])
		}
	}
}

// TestRestoreCommandsRun runs the commands for members of any name: no command runs another
// command, and each member is either in all commands or listed as omitted.
func TestRestoreCommandsRun(t *testing.T) {
	good := snapshot.Member{ID: "1", Name: "node-1", PeerURLs: []string{"https://10.0.0.1:2380"}}
	for _, s := range append(hostileWords(), "a,b", "a=http://x") {
		for _, odd := range []snapshot.Member{
			{ID: "2", Name: s, PeerURLs: []string{"https://10.0.0.2:2380"}},
			{ID: "2", Name: "node-2", PeerURLs: []string{"http://" + s + ":2380"}},
		} {
			commands, left := restoreCommands("out.db", []snapshot.Member{good, odd}, nil, 7)
			require.Equal(t, 2, len(commands)+len(left), "%q", s)
			for i, line := range commands {
				require.True(t, isPrintable(line))
				words := runLine(t, line)
				require.Equal(t, []string{"snapshot", "restore", "out.db", "--bump-revision", "7", "--mark-compacted"},
					words[:6])
				named := []snapshot.Member{good}
				if len(left) == 0 {
					named = append(named, odd)
				}
				slices.SortFunc(named, func(a, b snapshot.Member) int { return strings.Compare(a.Name, b.Name) })
				m, cluster := named[i], []string(nil)
				for _, n := range named {
					cluster = append(cluster, n.Name+"="+n.PeerURLs[0])
				}
				require.Equal(t, []string{"--data-dir", "/var/lib/etcd", "--name", m.Name, "--initial-cluster",
					strings.Join(cluster, ","), "--initial-advertise-peer-urls", m.PeerURLs[0]}, words[6:])
			}
		}
	}
	commands, left := restoreCommands("$(touch PWN)\n.db", nil, nil, 7)
	require.Empty(t, left)
	require.Len(t, commands, 1)
	runLine(t, commands[0])
}

// TestBumpFits checks that a store near the last revision refuses a bump that is too large for a
// server, and a server works with the bump in the refusal.
func TestBumpFits(t *testing.T) {
	in := filepath.Join("..", "testdata", "hostile", "v-revmaxbump.db.gz")
	dir := t.TempDir()
	run := func(out string, bump int64) (*Report, error) {
		return Run(t.Context(), Options{Command: "test", In: in, Out: filepath.Join(dir, out), BumpRevision: bump},
			planFunc(func(context.Context, *View) error { return nil }))
	}
	r, err := run("refused.db", 0)
	require.ErrorIs(t, err, ErrRefused)
	refusal := r.Problems[len(r.Problems)-1]
	require.Equal(t, CodeBumpTooLarge, refusal.Code)
	require.NoFileExists(t, filepath.Join(dir, "refused.db"))
	_, err = Run(t.Context(), Options{Command: "test", In: in, Out: filepath.Join(dir, "shown.db")},
		planFunc(func(_ context.Context, v *View) error {
			v.Make(Output{NotForRestore: true})
			return nil
		}))
	require.NoError(t, err, "nothing is raised where nothing is restored")
	_, err = run("never.db", math.MaxInt64)
	require.ErrorIs(t, err, ErrRefused)

	most := snapshot.MostBump(r.Input.Revision + 1)
	require.Contains(t, refusal.Reason, fmt.Sprintf("--bump-revision %d", most))
	_, err = run("beyond.db", most+1)
	require.ErrorIs(t, err, ErrRefused)
	r, err = run("out.db", most)
	require.NoError(t, err)
	require.Contains(t, r.Restore[0], fmt.Sprintf("--bump-revision %d ", most))
	server := etcdtest.Start(t, etcdtest.Restore(t, r.Output.Path, etcdtest.BumpRevision(uint64(most))))
	etcdtest.Run(t, server, "put /new x\ncompact")
	require.Equal(t, r.Output.Revision+most+1, etcdtest.Revision(t, server))
}
