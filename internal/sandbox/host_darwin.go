package sandbox

import (
	"os"
	"os/exec"
)

func ownProgram() (string, error) { return os.Executable() }

// dieWithUs does nothing: the part that runs a program kills it.
func dieWithUs(*exec.Cmd) {}

func limitMemory(int, uint64) {}

func waitEnd(int) bool { return false }
