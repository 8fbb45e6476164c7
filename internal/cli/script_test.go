package cli

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/klog/v2"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(Parts(), os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	klog.SetLogger(klog.Logger{}) // like main, and before anything logs
	testscript.Main(m, map[string]func(){
		"etcdshift":      documentedMain,
		"etcdshift-fake": fakeMain,
		"confine":        confineMain,
		"convert":        convertMain,
		"torture":        tortureMain,
	})
}

// TestScript runs every script of testdata/script. Besides testscript's commands, scripts have
//
//	fixture SRC FILE     copies a recorded file of the main testdata, unzipped, to FILE. At
//	                     the end of the script FILE must have the same bytes, size, mode and times
//	exits N COMMAND...   runs a command that must exit with status N
//	flip FILE OFFSET     inverts a byte; a negative offset counts from the end
//	truncate FILE SIZE   shortens a file; a negative size counts from the end
//	mode FILE MODE       checks a file's permissions
//	left NAME...         checks that the folder holds exactly these files, including hidden ones
//
// and the commands editCmd, holdsCmd, sameCmd, valuesCmd, jsonCmd, encryptCmd, decryptCmd, kmsCmd,
// etcdCmd, webhookCmd and packCmd.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SCHEMAS", schemaFolder())
			env.Setenv("POLICIES", testdata("policies"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "disk" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return confine([]string{"disk", os.TempDir(), "4096", "true"}) == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fixture":  fixtureCmd,
			"member":   memberCmd,
			"exits":    exitsCmd,
			"flip":     flipCmd,
			"truncate": truncateCmd,
			"mode":     modeCmd,
			"left":     leftCmd,
			"edit":     editCmd,
			"holds":    holdsCmd,
			"same":     sameCmd,
			"values":   valuesCmd,
			"json":     jsonCmd,
			"encrypt":  encryptCmd,
			"decrypt":  decryptCmd,
			"kms":      kmsCmd(t),
			"etcd":     etcdCmd(t),
			"webhook":  webhookCmd,
			"pack":     packCmd,
		},
	})
}

func fixtureCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fixture SRC FILE")
	}
	data, err := readFixture(testdata(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o440))
	unchanging(ts, args[1])
}

// memberCmd unpacks a recorded data directory, whose files the script must not change.
func memberCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: member NAME DIR")
	}
	dir := ts.MkAbs(args[1])
	ts.Check(etcdtest.UnpackMember(testdata(filepath.Join("wal", args[0]+".tar.zst")), dir))
	ts.Check(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			unchanging(ts, path)
		}
		return err
	}))
}

// unchanging checks at the end of the script that a file has the same bytes, size, mode and times
// as now.
func unchanging(ts *testscript.TestScript, name string) {
	path := ts.MkAbs(name)
	before := fingerprint(ts, path)
	ts.Defer(func() {
		if after := fingerprint(ts, path); after != before {
			ts.Fatalf("%s was changed: %s, was %s", name, after, before)
		}
	})
}

// readFixture reads a file, or its gzipped form.
func readFixture(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return data, err
	}
	zipped, err := os.ReadFile(path + ".gz")
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func fingerprint(ts *testscript.TestScript, path string) string {
	data, err := os.ReadFile(path)
	ts.Check(err)
	info, err := os.Lstat(path)
	ts.Check(err)
	return fmt.Sprintf("%x %d %v %v", sha256.Sum256(data), info.Size(), info.Mode(), info.ModTime())
}

func exitsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	status := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

func flipCmd(ts *testscript.TestScript, neg bool, args []string) {
	data, at, path := fileAnd(ts, neg, args)
	data[at] ^= 0xff
	ts.Check(os.Remove(path))
	ts.Check(os.WriteFile(path, data, 0o600))
}

func truncateCmd(ts *testscript.TestScript, neg bool, args []string) {
	data, at, path := fileAnd(ts, neg, args)
	ts.Check(os.Remove(path))
	ts.Check(os.WriteFile(path, data[:at], 0o600))
}

// fileAnd reads FILE and a position in it.
func fileAnd(ts *testscript.TestScript, neg bool, args []string) (data []byte, at int, path string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: FILE POSITION")
	}
	path = ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	at, err = strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	return data, at, path
}

func modeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE MODE")
	}
	info, err := os.Lstat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

func leftCmd(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs("."))
	ts.Check(err)
	var names []string
	for _, e := range entries {
		if e.Name() != ".tmp" { // testscript's folder
			names = append(names, e.Name())
		}
	}
	got, want := strings.Join(names, " "), strings.Join(args, " ")
	if neg || got != want {
		ts.Fatalf("the folder holds %s, want %s", got, want)
	}
}
