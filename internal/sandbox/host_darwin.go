package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

func ownProgram() (string, error) { return os.Executable() }

// dieWithUs does nothing: the part that runs the program kills it.
func dieWithUs(*exec.Cmd) {}

func limitMemory(int, uint64) {}

func waitEnd(int) bool { return false }

func maxRSS(state *os.ProcessState) int64 { return state.SysUsage().(*syscall.Rusage).Maxrss }
