package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

// eachCommand visits every command with an action, with its words.
func eachCommand(commands []*cli.Command, path []string, visit func(path []string, c *cli.Command)) {
	for _, c := range commands {
		words := append(path[:len(path):len(path)], c.Name)
		if len(c.Subcommands) == 0 {
			visit(words, c)
		}
		eachCommand(c.Subcommands, words, visit)
	}
}

// runWords runs the program and returns its output.
func runWords(words ...string) (status int, stdout, stderr string) {
	return runWithin(context.Background(), words...)
}

// runWithin is runWords with a context.
func runWithin(ctx context.Context, words ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(ctx, append([]string{"etcdshift"}, words...), strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// Errors of the flag library describe its own syntax of flags, not ours.
func TestFlagErrors(t *testing.T) {
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		for _, f := range c.Flags {
			value := "maybe"
			takes := "true or false"
			switch f.(type) {
			case *cli.IntFlag, *cli.Int64Flag, *cli.Uint64Flag:
				takes = "a whole number"
			case *cli.DurationFlag:
				takes = "a time such as 30s"
			case *cli.BoolFlag:
			default:
				continue
			}
			for _, name := range f.Names() {
				flag := "--" + name
				if len(name) == 1 {
					flag = "-" + name
				}
				status, _, stderr := runWords(append(path, flag+"="+value, "a", "b", "c")...)
				require.Equal(t, exitUsage, status, "%s %s", path, flag)
				require.Contains(t, stderr, flag+` is "maybe"; it takes `+takes, "%s", path)
				require.NotContains(t, stderr, "parse error")
			}
		}
	})
	for words, want := range map[string]string{
		"get --revision 99999999999999999999 a b": `get: --revision is "99999999999999999999"; it takes a whole ` +
			`number up to 9223372036854775807`,
		"sizes --top 1.5 a": `sizes: --top is "1.5"; it takes a whole number`,
		"--x=1 get": `unknown flag "--x=1" here; the flags of a command stand after ` +
			`its name`,
		"--revision 3 get a b":  `unknown flag "--revision" here`,
		"-q status x":           `unknown flag "-q" here`,
		"migrate --x calico-v3": `migrate: unknown flag "--x" here`,
		"--version=x":           `--version is "x"; it takes true or false`,
		"-v=x":                  `-v is "x"; it takes true or false`,
		"--help=x":              `--help is "x"; it takes true or false`,
		"get -h=3":              `get: -h is "3"; it takes true or false`,
		"help nope":             `unknown command "nope"`,
		"help kcp nope":         `kcp: unknown command "nope"`,
		"get a":                 `get: takes SNAPSHOT TYPE[/NAME] [NAME...]; got 1: ["a"]`,
	} {
		status, _, stderr := runWords(strings.Fields(words)...)
		require.Equal(t, exitUsage, status, words)
		require.Contains(t, stderr, "etcdshift: "+want, words)
	}
}

func TestHelpOfFlags(t *testing.T) {
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		_, help, _ := runWords(append(path, "--help")...)
		require.NotContains(t, help, "(default: 0)", "%s", path)
		require.NotContains(t, help, "(default: )", "%s", path)
		_, same, _ := runWords(append([]string{"help"}, path...)...)
		require.Equal(t, help, same, "%s", path)
	})
	_, help, _ := runWords("--help")
	require.NotContains(t, help, "Shows a list of commands")
	_, help, _ = runWords("sizes", "--help")
	require.Contains(t, help, "(default: 10)")
}

// Only --help pays for the help of all commands.
func TestHelpOnRequest(t *testing.T) {
	for words, want := range map[string]bool{
		"version": false, "get --help": true, "kcp list -h": true, "help get": true,
	} {
		app := newApp(Commands())
		app.Writer = io.Discard
		require.NoError(t, runApp(t.Context(), app, append([]string{programName}, strings.Fields(words)...)))
		require.Equal(t, want, app.CustomAppHelpTemplate != "", words)
		eachCommand(app.Commands, nil, func(path []string, c *cli.Command) {
			require.Equal(t, want, c.CustomHelpTemplate != "", "%s: %s", words, path)
		})
	}
}

// TestHelpFits: the help of each command, group and program begins with an example, and fits 80
// columns.
func TestHelpFits(t *testing.T) {
	check := func(path []string) {
		_, help, _ := runWords(append(path, "--help")...)
		require.Regexp(t, `^Example:\n   \S+ `, help, "%s", path)
		for line := range strings.Lines(help) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, "%s: %s", path, line)
			require.NotRegexp(t, `[ \t]\n$`, line, "%s", path)
		}
	}
	check(nil)
	eachCommand(Commands(), nil, func(path []string, _ *cli.Command) {
		for n := range path {
			check(path[:n+1])
		}
	})
	_, help, _ := runWords("kcp", "import", "--help")
	require.Contains(t, help, "\nUsage:\n   etcdshift kcp import [flags] ARCHIVE SHARD OUT\n   etcdshift kcp import "+
		"[flags] --orphans-from SHARD1 SHARD OUT\n\nFlags:\n")
}
