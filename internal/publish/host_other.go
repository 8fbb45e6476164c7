//go:build !linux && !windows

package publish

import (
	"errors"
	"os"
)

// host returns the calls of systems without nameless files and renameNoReplace: named files and
// link(2).
func host() system {
	return system{
		nameless:        func(*os.Root, string, bool) (*os.File, error) { return nil, errors.ErrUnsupported },
		nameNameless:    func(*os.Root, *os.File, string) error { return errors.ErrUnsupported },
		named:           openNamed,
		renameNoReplace: func(*os.Root, string, string) error { return errors.ErrUnsupported },
		link:            (*os.Root).Link,
		sync:            (*os.File).Sync,
	}
}
