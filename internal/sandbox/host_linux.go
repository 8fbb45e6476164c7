package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProgram is this program, even when its file has been replaced or removed.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// dieWithUs has the kernel kill a child when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// limitMemory limits the memory of a process and of those that it starts. When the machine has less
// than that, the kernel ends one of them before any other program.
func limitMemory(pid int, most uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
}

// waitEnd waits until a child has ended, and leaves its number in use. False means that it cannot.
func waitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
