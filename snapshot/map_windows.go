package snapshot

import (
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps the first size bytes of a file, read-only. Windows truncates no mapped file; an
// unreadable page, such as on a network drive, is a fault that guard catches.
func mapFile(f *os.File, size int) ([]byte, error) {
	all := uint64(size)
	section, err := windows.CreateFileMapping(
		windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, uint32(all>>32), uint32(all), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(section) // the view keeps the section open
	at, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, os.NewSyscallError("MapViewOfFile", err)
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size), nil
}

func unmap(data []byte) error {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(first))
}

// onDisk returns the size of a file: Windows does not report the bytes on the disk.
func onDisk(info fs.FileInfo) int64 { return info.Size() }
