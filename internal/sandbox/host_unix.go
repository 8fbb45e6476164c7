//go:build linux || darwin

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeBytes returns the space available to this user in the filesystem of a folder.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}

// tryLock locks an open file or folder until all processes that inherit it have closed it.
func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	if err != nil {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

func ownedByUs(info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Getuid()
}

// ownGroup makes a child the leader of a process group; Ctrl-C in a terminal does not reach the
// child.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ownsGroup returns an error unless this process leads its own group, because a part kills its
// group.
func ownsGroup() error {
	if unix.Getpgrp() != os.Getpid() {
		return errors.New("only etcdshift itself starts its parts")
	}
	return nil
}

// killGroup kills all processes in the group of a leader.
func killGroup(leader int) { _ = unix.Kill(-leader, unix.SIGKILL) }

// privateFiles denies other users access to files and sockets created by this process.
func privateFiles() { unix.Umask(0o077) }
