//go:build !unix

package conversion

import "os/exec"

// ownGroup leaves it at os/exec's own cancellation, which ends the command alone.
func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
