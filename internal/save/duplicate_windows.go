package save

import (
	"os"

	"golang.org/x/sys/windows"
)

// duplicate opens an open file once more: either is closed alone.
func duplicate(f *os.File) (*os.File, error) {
	self, again := windows.CurrentProcess(), windows.Handle(0)
	err := windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &again, 0, false, windows.DUPLICATE_SAME_ACCESS)
	if err != nil {
		return nil, os.NewSyscallError("DuplicateHandle", err)
	}
	return os.NewFile(uintptr(again), f.Name()), nil
}
