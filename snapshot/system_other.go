//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// startWriteback does nothing: there is no such hint.
func startWriteback(*os.File, int64, int64) {}

func copyRange(out, in *os.File, at, n int64) (int64, error) { return copyThrough(out, in, at, n) }

// populate is not supported; callers use plain reads.
func populate([]byte) error { return errors.ErrUnsupported }
