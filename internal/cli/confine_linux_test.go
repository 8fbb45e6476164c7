package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// confineMain runs a command under conditions that are hard to create in a script:
//
//	confine modes COMMAND...           obeys file modes, even as root
//	confine fsize BYTES COMMAND...     cannot write files larger than BYTES
//	confine memory BYTES COMMAND...    cannot reserve more than BYTES
//	confine disk DIR BYTES COMMAND...  sees DIR as an empty private file system of BYTES
func confineMain() {
	err := confine(os.Args[1:])
	if err == nil {
		return
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "confine:", err)
	os.Exit(99)
}

func confine(args []string) error {
	runtime.LockOSThread() // a thread gives up its own capabilities only
	switch how, rest := args[0], args[1:]; how {
	case "modes":
		if os.Geteuid() == 0 {
			for _, capability := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
					return err
				}
			}
		}
		return become(rest)
	case "fsize", "memory":
		n, err := strconv.ParseUint(rest[0], 10, 64)
		if err != nil {
			return err
		}
		limit := unix.RLIMIT_FSIZE
		if how == "memory" {
			limit = unix.RLIMIT_AS
		}
		if err := unix.Setrlimit(limit, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
		return become(rest[1:])
	case "disk": // a private namespace needs a new process
		cmd := exec.Command("/proc/self/exe", append([]string{"mounted"}, rest...)...)
		cmd.Args[0] = "confine" // recognized by the test binary
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		return cmd.Run()
	case "mounted":
		if err := unix.Mount("tmpfs", rest[0], "tmpfs", 0, "size="+rest[1]); err != nil {
			return err
		}
		return become(rest[2:])
	}
	return fmt.Errorf("no %q", args[0])
}

// become replaces this process by the command.
func become(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, args, os.Environ())
}
