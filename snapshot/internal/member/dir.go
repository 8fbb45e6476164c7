package member

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Errors of a data directory.
var (
	// ErrRunning is returned for a data directory whose database an etcd has open.
	ErrRunning = finding.WithHint(errors.New("an etcd uses the data directory"),
		"take a snapshot of the running member with \"etcdshift save OUT\", or stop the member")
	// errNoGivenLog is wal.ErrUnusable for a given folder without a log.
	errNoGivenLog = finding.WithLasting(wal.ErrUnusable, "give the folder of this member's log, with its files *.wal")
)

// Dir is the data directory of a member.
type Dir struct {
	Database string   // its path
	Log      string   // the folder of the log
	IsGiven  bool     // the log is not that of the directory
	Peers    []string // data directories of other members, or their logs
}

// Find returns the parts of a data directory, or of its folder "member".
func Find(path string) (d Dir, is bool) {
	for _, member := range []string{filepath.Join(path, "member"), path} {
		d = Dir{Database: filepath.Join(member, "snap", "db"), Log: filepath.Join(member, "wal")}
		if info, err := os.Stat(d.Database); err == nil && info.Mode().IsRegular() {
			return d, true
		}
	}
	return d, false
}

// OpenDatabase opens the database at path, unless an etcd has it open (ErrRunning). The error is
// without the path.
func OpenDatabase(path string) (*os.File, error) {
	f, err := wal.OpenNow(path)
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return nil, p.Err
	}
	if err == nil && inUse(f) {
		_ = f.Close()
		return nil, ErrRunning
	}
	return f, err
}

// Received returns the path of the database that a member received from its leader before the first
// entry of its log; "" if err is no gap, or without such a file.
func (d Dir) Received(err error) string {
	var missing gap
	if !errors.As(err, &missing) {
		return ""
	}
	path := filepath.Join(filepath.Dir(d.Database), fmt.Sprintf("%016x.snap.db", missing.first-1))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}
