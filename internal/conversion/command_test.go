package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// converterVariable makes the test binary a converter, for tests beyond the abilities of sed.
const converterVariable = "ETCDSHIFT_TEST_CONVERTER"

func TestMain(m *testing.M) {
	if bad, ok := os.LookupEnv(converterVariable); ok {
		os.Exit(convertStdin(bad))
	}
	os.Exit(m.Run())
}

// convertStdin is a correct converter, except that it crashes on an object with the name bad.
func convertStdin(bad string) int {
	in, err := readReview(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	out := good(in, func(obj m) any {
		if obj["metadata"].(m)["name"] == bad {
			panic("can't stand " + bad)
		}
		return obj
	})
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 4
	}
	return 0
}

// withSed is a complete converter in two lines of shell: it turns the request into an answer and
// renames a field.
const withSed = `sed -e 's/"request":{"uid":\("[^"]*"\),"desiredAPIVersion":"[^"]*","objects":\(\[.*\]\)},` +
	`"response".*/` +
	`"response":{"uid":\1,"convertedObjects":\2,"result":{"status":"Success"}}}/' \
	-e 's|demo.example.com/v1|demo.example.com/v2|g' -e 's/"size":/"replicas":/g'`

// run converts objs to v2 through the command, and checks that no process of the command is left.
func run(t testing.TB, command string, timeout time.Duration, objs ...map[string]any) ([]Converted, error) {
	t.Helper()
	before := runtime.NumGoroutine()
	c, err := Command(command, timeout)
	require.NoError(t, err)
	results, err := c.Convert(t.Context(), widgets(apiextensionsv1.WebhookClientConfig{}), "v2", objs)
	settled(t, before)
	return results, err
}

func itself(t testing.TB, bad string) string {
	binary, err := os.Executable()
	require.NoError(t, err)
	return fmt.Sprintf("%s='%s' '%s'", converterVariable, bad, binary)
}

func TestCommandConverts(t *testing.T) {
	for _, command := range []string{
		withSed,
		"sleep 300 >/dev/null 2>&1 </dev/null & " + withSed, // a child that outlives the command
		"cat >$$ && exec <$$ && rm $$ && { " + withSed + "; }",
		"echo noise >&2; " + itself(t, ""),
	} {
		t.Chdir(t.TempDir())
		objs := objects(t, 5)
		results, err := run(t, command, 0, objs...)
		require.NoError(t, err)
		for i, r := range results {
			require.NoError(t, r.Err)
			require.Equal(t, want(objs[i]), r.Object)
		}
	}
}

// Large batches neither block on full pipes nor are truncated.
func TestCommandTakesALargeBatch(t *testing.T) {
	objs := objects(t, 2000)
	for _, obj := range objs {
		obj["spec"].(m)["text"] = strings.Repeat("<ä&", 700)
	}
	results, err := run(t, itself(t, ""), 0, objs...)
	require.NoError(t, err)
	for i, r := range results {
		require.NoError(t, r.Err)
		require.Equal(t, want(objs[i]), r.Object)
	}
}

func TestCommandNamesTheObjectAtFault(t *testing.T) {
	results, err := run(t, itself(t, "w2"), 0, objects(t, 5)...)
	require.NoError(t, err)
	for i, r := range results {
		if i == 2 {
			require.ErrorIs(t, r.Err, errRefused)
			require.ErrorContains(t, r.Err, "exit status 2: panic: can't stand w2")
		} else {
			require.NoError(t, r.Err)
		}
	}
	results, err = run(t, withSed+` | sed 's/"status":"Success"/"status":"Failure","message":"not today"/'`, 0,
		objects(t, 2)...)
	require.NoError(t, err)
	for _, r := range results {
		require.ErrorContains(t, r.Err, "not today")
	}
}

// TestCommandFails checks the reasons of unusable answers; calls counts the starts of the command
// for 8 objects.
func TestCommandFails(t *testing.T) {
	for _, tc := range []struct {
		command, want string
		calls         int
	}{
		{"cat >/dev/null; echo sorry, no disk >&2; exit 1", "exit status 1: sorry, no disk", 5},
		{"exit 1", "exit status 1", 5}, // never reads stdin: EPIPE is not the message
		{"true", "empty answer", 5},
		{"exec 0<&-; echo {", "the answer (2 bytes) is not a ConversionReview in JSON", 5},
		{"cat", "response.uid \"\" is not the request's", 5},
		{"kill -9 $$", "signal: killed", 5},
		{withSed + "; exit 7", "exit status 7", 5}, // the exit status overrides an answer
		{"no-such-command-here --convert", "cannot be run: exit status 127: /bin/sh: ", 1},
		{"/etc/passwd", "cannot be run: exit status 126: /bin/sh: ", 1},
		{"yes '{}'", "the answer is longer than 1677", 5},
		{`printf '\033[2Jred\a\n' >&2; i=0; while [ $i -lt 999 ]; do echo line $i >&2; i=$((i+1)); done; exit 1`,
			"line 997 line 998", 5},
	} {
		log := filepath.Join(t.TempDir(), "calls")
		results, err := run(t, "echo >>"+log+"; "+tc.command, 0, objects(t, 8)...)
		require.ErrorIs(t, err, ErrUnusable, tc.command)
		require.ErrorContains(t, err, tc.want)
		require.ErrorContains(t, err, `conversion by command "echo >>/`)
		require.NotContains(t, err.Error(), "\x1b")
		require.Less(t, len(err.Error()), 3000)
		require.Nil(t, results)
		calls, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Len(t, calls, tc.calls, tc.command)
	}
}

// A command that hangs, alone or with children, in the foreground or not, is killed with all its
// children.
func TestCommandIsKilled(t *testing.T) {
	for name, command := range map[string]string{
		"hang":               "echo $$ >>PIDS; exec sleep 300",
		"deaf":               "trap '' TERM INT HUP; echo $$ >>PIDS; while :; do sleep 300; done",
		"reads, then hangs":  "echo $$ >>PIDS; cat >/dev/null; sleep 300 & echo $! >>PIDS; wait",
		"children":           "echo $$ >>PIDS; (sleep 300 & echo $! >>PIDS; wait) & echo $! >>PIDS; wait",
		"trickles for ever":  "echo $$ >>PIDS; while :; do printf ' '; sleep 0.01; done",
		"child holds stdout": "sleep 300 & echo $! >>PIDS; exit 1",
	} {
		pids := filepath.Join(t.TempDir(), "pids")
		command = strings.ReplaceAll(command, "PIDS", pids)
		start := time.Now()
		_, err := run(t, command, 300*time.Millisecond, objects(t, 8)...)
		require.ErrorIs(t, err, ErrUnusable, name)
		if name != "child holds stdout" {
			require.ErrorContains(t, err, "no whole answer within 300ms", name)
			require.Less(t, time.Since(start), 2*time.Second, name)
		}
		gone(t, pids)

		c, err := Command(command, 0)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		start = time.Now()
		_, err = c.Convert(ctx, widgets(apiextensionsv1.WebhookClientConfig{}), "v2", objects(t, 8))
		require.ErrorIs(t, err, context.Canceled, name)
		require.Less(t, time.Since(start), 2*time.Second, name)
		gone(t, pids)
	}
}

// A child that outlives a good answer may run for the grace time and is then killed; the answer
// counts.
func TestCommandLeavesAChild(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	objs := objects(t, 3)
	results, err := run(t, withSed+"; sleep 300 & echo $! >"+pids, 0, objs...)
	require.NoError(t, err)
	for i, r := range results {
		require.Equal(t, want(objs[i]), r.Object)
	}
	gone(t, pids)
}

// gone waits until all of the processes have ended; an unreaped zombie counts as ended.
func gone(t testing.TB, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, data)
	for _, pid := range strings.Fields(string(data)) {
		require.Eventually(t, func() bool {
			status, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(status), ") Z ")
		}, 5*time.Second, 10*time.Millisecond, "process %s lives", pid)
	}
}

func TestRefusesCommands(t *testing.T) {
	for _, tc := range []struct {
		command string
		want    string
	}{
		{"", "conversion command: empty"},
		{" \n", "conversion command: empty"},
		{"a\x00b", "conversion command: has a NUL byte"},
	} {
		_, err := Command(tc.command, 0)
		require.EqualError(t, err, tc.want)
	}
	_, err := run(t, "exit 1;"+strings.Repeat(" ", 1<<20), 0, objects(t, 1)...)
	require.ErrorIs(t, err, ErrUnusable)
	require.ErrorContains(t, err, "cannot be run: fork/exec /bin/sh: "+syscall.E2BIG.Error())
	require.Less(t, len(err.Error()), 300)
}
