//go:build !linux && !darwin

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
)

// errSystem is for systems that cannot end the processes of a killed run.
var errSystem = fmt.Errorf("servers run in a sandbox on Linux only, not on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func freeBytes(string) (int64, error) { return 0, errSystem }
func tryLock(*os.File) error          { return errSystem }
func ownsGroup() error                { return errSystem }
func ownProgram() (string, error)     { return "", errSystem }
func ownedByUs(fs.FileInfo) bool      { return false }
func waitEnd(int) bool                { return false }
func ownGroup(*exec.Cmd)              {}
func dieWithUs(*exec.Cmd)             {}
func killGroup(int)                   {}
func limitMemory(int, uint64)         {}
func privateFiles()                   {}
