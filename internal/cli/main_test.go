package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/save"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func TestArrange(t *testing.T) {
	app := &cli.App{Commands: []*cli.Command{
		{Name: "show", Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
			&cli.StringSliceFlag{Name: "allow"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		}},
		{Name: "group", Subcommands: []*cli.Command{{Name: "one", Flags: []cli.Flag{&cli.BoolFlag{Name: "x"}}}}},
	}}
	for in, want := range map[string]string{
		"show a b":                   "show -- a b",
		"show a -o json b":           "show -o json -- a b",
		"show a b -o=json --quiet":   "show -o=json --quiet -- a b",
		"show a -quiet=false b":      "show -quiet=false -- a b",
		"show -o -q a":               "show -o -q -- a",
		"show --allow x a --allow y": "show --allow x --allow y -- a",
		"show --allow=x=y a":         "show --allow=x=y -- a",
		"show -q -- -o json":         "show -q -- -o json",
		"show a -- -- -q":            "show -- a -- -q",
		"show -":                     "show -- -",
		"show":                       "show --",
		"show a b -h -o":             "show -h --",
		"show a --help":              "show --help --",
		"group one a -x":             "group one -x -- a",
		"group":                      "group",
		"--version":                  "--version",
		"help show":                  "help show",
		"other -x":                   "other -x",
	} {
		got, err := arrange(app, append([]string{"p"}, strings.Fields(in)...))
		require.NoError(t, err, in)
		require.Equal(t, "p "+want, strings.Join(got, " "), in)
	}
	for in, want := range map[string]string{
		"show -x":                 `show: unknown flag "-x"`,
		"group -x one a":          `group: unknown flag "-x" here; the flags of a command stand after its name`,
		"show a --outputs":        `show: unknown flag "--outputs"`,
		"show a --=x":             `show: unknown flag "--=x"`,
		"show a -o":               `show: flag "-o" needs a value`,
		"group one --xy a":        `group one: unknown flag "--xy"`,
		"show --quiet=x -y":       `show: --quiet is "x"; it takes true or false`,
		"show -o x a -o x":        `show: flag "-o" is given twice`,
		"show -o x --output=y":    `show: flag "--output" is given twice`,
		"show -q a --quiet=false": `show: flag "--quiet" is given twice`,
		"show --allow= a":         `show: flag "--allow" has an empty value`,
		"show --quiet= a":         `show: flag "--quiet" has an empty value`,
	} {
		_, err := arrange(app, append([]string{"p"}, strings.Fields(in)...))
		require.EqualError(t, err, want)
		require.Equal(t, exitUsage, statusOf(err))
	}
	_, err := arrange(app, []string{"p", "show", "--allow", "", "a"})
	require.EqualError(t, err, `show: flag "--allow" has an empty value`)
}

// TestEmptyValues: an empty flag value, from an unset shell variable, never counts as an absent
// flag.
func TestEmptyValues(t *testing.T) {
	n := 0
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		for _, f := range c.Flags {
			n++
			status, stdout, stderr := runWords(append(slices.Clone(path), "--"+f.Names()[0]+"=", "a", "b")...)
			require.Equal(t, exitUsage, status, "%s --%s", path, f.Names()[0])
			require.Contains(t, stderr, `flag "--`+f.Names()[0]+`" has an empty value`)
			require.Empty(t, stdout)
		}
	})
	require.Greater(t, n, 40)
}

func TestFinish(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{nil, 0, ""},
		{errors.New("a\nb\x00"), 1, "etcdshift: a\netcdshift: \"b\\x00\"\n"},
		{context.Canceled, 130, "etcdshift: interrupted; nothing was written\n"},
		{&failure{5, fmt.Errorf("x: %w", context.Canceled), ""}, 130, "etcdshift: interrupted; nothing was written\n"},
		{&failure{5, fmt.Errorf("x: %w", fs.ErrPermission), ""}, 5,
			"etcdshift: x: permission denied\nhint: run as a user who may read the input and write to the folder of " +
				"the output\n"},
		{&failure{3, errors.New("x"), "do y"}, 3, "etcdshift: x\nhint: do y\n"},
		{&failure{3, errors.New("x"), "do y\x1b"}, 3, "etcdshift: x\nhint: \"do y\\x1b\"\n"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, c.status, finish(c.err, &stderr))
		require.Equal(t, c.want, stderr.String())
	}
}

// An interrupted --restore-to does not say that nothing was written: OUT was.
func TestOnlyRestoreFailed(t *testing.T) {
	r := transform.NewReport("x")
	r.Output, r.Outcome = &snapshot.FileInfo{Path: "out.db"}, transform.Written
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, finish(onlyRestoreFailed(fmt.Errorf("x: %w", context.Canceled), r), &stderr))
	require.Contains(t, stderr.String(),
		"etcdshift: the restore was interrupted (out.db: written)\nhint: the output was")
}

func TestVerdict(t *testing.T) {
	problem := func(level finding.Level) *transform.Report {
		r := transform.NewReport("migrate x")
		r.Problems = append(r.Problems, finding.Finding{Code: &finding.Code{Name: "conflict"}, Level: level})
		return r
	}
	require.NoError(t, migration{}.verdict(transform.NewReport("x"), nil))
	require.NoError(t, migration{}.verdict(problem(finding.Warning), nil))
	require.Equal(t, exitAllowed, statusOf(migration{}.verdict(problem(finding.Error), nil)))
	require.Equal(t, exitRefused, statusOf(migration{}.verdict(problem(finding.Error), transform.ErrRefused)))
	require.Equal(t, exitUsage, statusOf(migration{}.verdict(problem(finding.Warning), transform.ErrOutIsIn)))
	require.Equal(t, exitFailed, statusOf(migration{}.verdict(problem(finding.Error), snapshot.ErrDamaged)))
	require.ErrorIs(t, migration{}.verdict(problem(finding.Warning), context.Canceled), context.Canceled)
}

// TestSentinelsHaveHints: every documented error of the libraries has a hint with a next step.
func TestSentinelsHaveHints(t *testing.T) {
	for _, err := range []error{
		snapshot.ErrNotSnapshot, snapshot.ErrTruncated, snapshot.ErrDigest, snapshot.ErrDamaged, snapshot.ErrChanged,
		snapshot.ErrVerify, transform.ErrOutIsIn, fs.ErrExist, fs.ErrNotExist, fs.ErrPermission,
		save.ErrLearner, save.ErrNoLeader, save.ErrLag, save.ErrCorrupt, save.ErrClusters, &save.Error{},
		fleet.ErrNotFleet, fleet.ErrChanged, fleet.ErrOtherInput, fleet.ErrLost, fleet.ErrDryRun, s3.ErrUncertain,
		s3.ErrBroken, s3.ErrTooLarge,
		storageversion.ErrNotThere, encoding.ErrEncrypted, encoding.ErrKMSv1, unusable{errors.New("x")},
	} {
		require.NotEmpty(t, hintFor(fmt.Errorf("wrapped: %w", err)), err)
	}
	require.Contains(t, hintFor(fmt.Errorf("write s3://b/k: %w", syscall.ENOSPC)), "TMPDIR")
	require.NotContains(t, hintFor(fmt.Errorf("write b/k: %w", syscall.ENOSPC)), "TMPDIR")
	for _, no := range []error{fs.ErrNotExist, fs.ErrPermission} {
		require.Contains(t, hintFor(fmt.Errorf("s3://b/k: %w: %w", publish.ErrScratch, no)), "TMPDIR")
	}
	require.Empty(t, hintFor(errors.New("something else")))
}

func TestInterrupted(t *testing.T) {
	path := recordedFile(t, t.TempDir(), "calico/before.db", "before.db")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, command := range []string{"status", "verify"} {
		status, stdout, stderr := runWithin(ctx, command, path)
		require.Equal(t, exitInterrupted, status, command)
		require.Empty(t, stdout)
		require.Equal(t, "etcdshift: interrupted; nothing was written\n", stderr)
	}
}

// TestStdoutFails: failing output is an error.
func TestStdoutFails(t *testing.T) {
	path := recordedFile(t, t.TempDir(), "calico/before.db", "before.db")
	for command, status := range map[string]int{
		"status": exitFailed, "status -o json": exitFailed,
		"verify": exitCannotCheck, "verify -o json": exitCannotCheck,
		"completion bash": exitFailed, "man": exitFailed,
	} {
		args := append([]string{"etcdshift"}, strings.Fields(command)...)
		if strings.HasPrefix(command, "status") || strings.HasPrefix(command, "verify") {
			args = append(args, path)
		}
		var stderr bytes.Buffer
		require.Equal(t, status, Run(context.Background(), args, nil, broken{}, &stderr), command)
		require.Equal(t, "etcdshift: write /dev/stdout: no pipe\n", stderr.String(), command)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no pipe")}
}

func TestSamePath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, filepath.Join(dir, "link")))
	t.Chdir(dir)
	require.True(t, samePath("a", file))
	require.True(t, samePath("link", file))
	require.True(t, samePath("./new", filepath.Join(dir, "new")))
	require.False(t, samePath("new", "newer"))
	require.False(t, samePath("a", "new"))
	require.False(t, samePath("no/new", "no/new"))
}

// TestRefusedHint: the hint has the remedy of each refusing code, and --allow for all codes,
// allowed ones included; no --allow if one of them cannot be allowed.
func TestRefusedHint(t *testing.T) {
	m := migration{transform.Spec{Codes: []*finding.Code{{Name: "bad", Allowed: finding.WentOn},
		{Name: "odd", Allowed: finding.WentOn}}, Settles: map[string]string{"bad": "make it good",
		"odd": "make it even", "stuck": "pull"}}}
	r := transform.NewReport("x")
	for _, p := range [][2]string{{"odd", "went on (allowed)"}, {"bad", "refused"}, {"bad", "refused"}} {
		r.Problems = append(r.Problems, finding.Finding{Code: &finding.Code{Name: p[0]}, Level: finding.Error,
			Outcome: finding.Outcome(p[1])})
	}
	require.Equal(t, "bad: make it good; otherwise \"etcdshift explain bad\" tells what to do; "+
		"change the command, or mend the live cluster and take a new snapshot, or go on with --allow bad --allow odd",
		m.refusedHint(r))
	r.Problems = append(r.Problems, finding.Finding{Code: &finding.Code{Name: "stuck"}, Level: finding.Error,
		Outcome: finding.Refused})
	require.Equal(t, "bad: make it good; stuck: pull; otherwise \"etcdshift explain bad\" tells what to do; "+
		"change the command, or mend the live cluster and take a new snapshot", m.refusedHint(r))
}
