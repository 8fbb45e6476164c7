//go:build unix

package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner is a user and a group, by number.
type Owner struct{ UID, GID int }

// ParseOwner parses "USER" or "USER:GROUP", by name or number. Without a group it is the user's
// own one.
func ParseOwner(text string) (*Owner, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	o := &Owner{}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	uid, numberErr := strconv.Atoi(name)
	switch {
	case err == nil:
		o.UID, _ = strconv.Atoi(u.Uid)
		o.GID, _ = strconv.Atoi(u.Gid)
	case numberErr == nil && uid >= 0 && hasGroup:
		o.UID = uid
	case numberErr == nil && uid >= 0:
		return nil, fmt.Errorf("no user %q on this machine; give its group too, as in %s:GROUP", name, name)
	default:
		return nil, fmt.Errorf("no user %q on this machine", name)
	}
	if !hasGroup {
		return o, nil
	}
	if o.GID, err = strconv.Atoi(group); err == nil && o.GID >= 0 {
		return o, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return nil, fmt.Errorf("no group %q on this machine", group)
	}
	o.GID, err = strconv.Atoi(g.Gid)
	return o, err
}

func ownerOf(info fs.FileInfo) *Owner {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return nil
	}
	return &Owner{int(stat.Uid), int(stat.Gid)}
}

// own gives a file or folder to the owner, if there is one.
func (o *Owner) own(path string) error {
	if o == nil || (o.UID == os.Geteuid() && o.GID == os.Getegid()) {
		return nil
	}
	return os.Lchown(path, o.UID, o.GID)
}

// locked reports whether a process has locked a file, as etcd locks its database.
func locked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // do not wait for the writer of a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
