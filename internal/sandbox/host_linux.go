package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownProgram returns the path of this program, valid even after its file is replaced or removed.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// dieWithUs makes the kernel kill a child when its starting thread ends.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// limitMemory limits the memory of a process and its children. If the machine runs out of memory
// first, the kernel kills one of them before any other program.
func limitMemory(pid int, most uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
}

// waitEnd waits until a child has ended, without releasing its PID. It returns false if it cannot
// wait.
func waitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
