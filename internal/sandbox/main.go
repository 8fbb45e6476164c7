package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// Word is the hidden first word of a command line that runs a part.
const Word = "__part"

// The parts of this package: an external program, a member of etcd, and the restore of a member.
const (
	runPart     = "run"
	memberPart  = "etcd"
	restorePart = "restore"
)

// Part is the work of a child. It returns when done or when the context ends. config is the config
// of Start, as JSON. Printed output goes to the log of the process.
type Part func(ctx context.Context, config []byte) error

// Main runs a part, of this package or of parts, if the arguments name one: a program or a TestMain
// must call it first. The program then exits with the code. The part ends with its parent process.
func Main(parts map[string]Part, args []string, stdin io.Reader, stderr io.Writer) (code int, isPart bool) {
	if len(args) != 4 || args[1] != Word {
		return 0, false
	}
	if err := runMain(parts, args[2], stdin, stderr); err != nil {
		var exit exitCode
		if errors.As(err, &exit) {
			return int(exit), true
		}
		fmt.Fprintln(stderr, failed+err.Error())
		return 1, true
	}
	return 0, true
}

func runMain(parts map[string]Part, name string, stdin io.Reader, stderr io.Writer) error {
	if err := ownsGroup(); err != nil {
		return err
	}
	privateFiles()
	input := bufio.NewReader(stdin)
	config, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		killGroup(os.Getpid()) // the parent has ended
	}()
	switch name {
	case runPart:
		return run(ctx, config, stderr)
	case memberPart:
		return runMember(ctx, config)
	case restorePart:
		return runRestore(ctx, config)
	}
	part, known := parts[name]
	if !known {
		return fmt.Errorf("%q is no part of this program", name)
	}
	return part(ctx, config)
}

// command is the configuration of the part "run".
type command struct {
	Path string
	Args []string
}

// exitCode is the exit status of a program, to be passed on.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run runs an external program in the group of this process until it ends, and forwards SIGTERM.
func run(ctx context.Context, config []byte, output io.Writer) error {
	var c command
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	runtime.LockOSThread() // the program dies with its starting thread
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	dieWithUs(cmd)
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return exitCode(128 + int(status.Signal()))
	}
	return exitCode(ended.ExitCode())
}
