//go:build !unix

package conversion

import "os/exec"

// ownGroup keeps os/exec's cancellation, which ends only the command.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
