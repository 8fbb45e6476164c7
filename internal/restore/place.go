package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// hiddenName is the folder in a data directory with a restore that is not complete.
const hiddenName = ".etcdshift-restore"

var (
	// ErrHasMember is the error for a data directory with a folder "member".
	ErrHasMember = finding.WithHint(errors.New("it has the data of a member"),
		"--move-aside keeps the old folder \"member\" under another name")
	// ErrRunning is the error for a data directory that an etcd uses.
	ErrRunning = finding.WithHint(errors.New("an etcd runs on it"), "stop this etcd first")
	// ErrLeft is the error for a data directory with an incomplete restore.
	ErrLeft = finding.WithHint(errors.New("another restore works here, or a killed one left it"),
		"if no restore is running, remove this folder")
	// ErrWALDir is the error for an existing folder of the log.
	ErrWALDir = finding.WithHint(errors.New("the folder exists"), "name a new folder with --wal-dir")
	// ErrWALInside is the error for a folder of the log inside of the folder "member".
	ErrWALInside = finding.WithHint(errors.New("the folder is inside of the data directory's folder \"member\""),
		"without --wal-dir, the log is in member/wal")
)

// place is a data directory that a member is restored into.
type place struct {
	Member
	owner     *Owner
	created   []string // the data directory and its parents, if this run created them; removed after an error
	hidden    string   // folder of the incomplete restore
	hiddenWAL string   // "" for a log in the data directory
	moveAside bool
	mode      string // of an existing data directory, if etcd warns about it
}

// prepare checks a data directory and creates the hidden folder in it. With an error, what was
// created is in the returned place.
func prepare(m Member, o Options) (p *place, err error) {
	p = &place{Member: m, owner: o.Owner, moveAside: o.MoveAside}
	if p.DataDir, err = filepath.Abs(m.DataDir); err != nil {
		return nil, err
	}
	if err := p.checkMember(); err != nil {
		return nil, err
	}
	if err := p.create(); err != nil {
		return p, err
	}
	hidden := filepath.Join(p.DataDir, hiddenName)
	if err := os.Mkdir(hidden, 0o700); errors.Is(err, fs.ErrExist) {
		return p, fmt.Errorf("%s: %w", hidden, ErrLeft)
	} else if err != nil {
		return p, err
	}
	p.hidden = hidden
	if m.WALDir == "" {
		return p, nil
	}
	if p.WALDir, err = filepath.Abs(m.WALDir); err != nil {
		return p, err
	}
	if member := filepath.Join(p.DataDir, "member"); strings.HasPrefix(p.WALDir+string(filepath.Separator),
		member+string(filepath.Separator)) {
		return p, fmt.Errorf("--wal-dir %s: %w", p.WALDir, ErrWALInside)
	}
	if _, err := os.Lstat(p.WALDir); !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("--wal-dir %s: %w", p.WALDir, errors.Join(ErrWALDir, err))
	}
	hiddenWAL := p.WALDir + hiddenName
	if _, err := os.Lstat(hiddenWAL); !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s: %w", hiddenWAL, ErrLeft)
	}
	p.hiddenWAL = hiddenWAL
	return p, nil
}

// checkMember returns an error if the data directory is in use, or has a member that must stay.
func (p *place) checkMember() error {
	member := filepath.Join(p.DataDir, "member")
	_, err := os.Lstat(member)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	running, err := locked(filepath.Join(member, "snap", "db"))
	switch {
	case err != nil:
		return err
	case running:
		return fmt.Errorf("%s: %w", p.DataDir, ErrRunning)
	case !p.moveAside:
		return fmt.Errorf("%s: %w", p.DataDir, ErrHasMember)
	}
	return nil
}

// create creates the data directory if it does not exist, and finds the owner of the new files.
func (p *place) create() error {
	info, err := os.Stat(p.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.mkdir(p.DataDir, 0o700); err != nil {
			return err
		}
		return p.owner.own(p.DataDir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: it is no folder", p.DataDir)
	}
	if mode := info.Mode().Perm(); mode != 0o700 { // etcd client/pkg/fileutil, PrivateDirMode
		p.mode = fmt.Sprintf("%04o", mode)
	}
	if p.owner == nil {
		p.owner = ownerOf(info)
	}
	return nil
}

// mkdir creates a folder and its parents.
func (p *place) mkdir(folder string, mode fs.FileMode) error {
	err := os.Mkdir(folder, mode)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(folder) != folder {
		if err := p.mkdir(filepath.Dir(folder), 0o755); err != nil {
			return err
		}
		err = os.Mkdir(folder, mode)
	}
	if err == nil {
		p.created = append(p.created, folder)
	}
	return err
}

// restored is the data directory that etcd's library fills.
func (p *place) restored() string { return filepath.Join(p.hidden, "data") }

// check compares the restored database with the numbers of the snapshot.
func (p *place) check(ctx context.Context, expected snapshot.Restored) error {
	db := filepath.Join(p.restored(), "member", "snap", "db")
	s, err := snapshot.Open(ctx, db, snapshot.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	got, err := s.Restored(ctx, 0)
	if err != nil {
		return err
	}
	if got != expected {
		return fmt.Errorf("%s: %w: revision %d, compacted %d, HashKV %d; expected %d, %d, %d", p.DataDir, ErrDiffers,
			got.Revision, got.CompactRevision, got.HashKV,
			expected.Revision, expected.CompactRevision, expected.HashKV)
	}
	return nil
}

// settle syncs the restored folders and gives them to their owner.
func (p *place) settle() (err error) {
	for _, folder := range []string{p.restored(), p.hiddenWAL} {
		if folder != "" && err == nil {
			err = settle(folder, p.owner)
		}
	}
	return err
}

// publish gives the restored folders their names. With an error, undo takes back what was done.
func (p *place) publish() (r Restored, undo renames, err error) {
	r = Restored{Name: p.Name, PeerURLs: p.PeerURLs, DataDir: p.DataDir, WALDir: p.WALDir, Mode: p.mode}
	if err := p.checkMember(); err != nil { // it may have appeared during the restore
		return r, undo, err
	}
	member := filepath.Join(p.DataDir, "member")
	if _, err := os.Lstat(member); err == nil {
		if r.MovedTo, err = freeName(member); err != nil {
			return r, undo, err
		}
		if err := undo.rename(member, r.MovedTo); err != nil {
			return r, undo, err
		}
	}
	if p.hiddenWAL != "" {
		if err := undo.rename(p.hiddenWAL, p.WALDir); err != nil {
			return r, undo, err
		}
		if err := syncFolder(filepath.Dir(p.WALDir)); err != nil {
			return r, undo, err
		}
	}
	if err := undo.rename(filepath.Join(p.restored(), "member"), member); err != nil {
		return r, undo, err
	}
	return r, undo, syncFolder(p.DataDir)
}

// renames are renamed files: pairs of the old and the new path.
type renames [][2]string

func (r *renames) rename(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		*r = append(*r, [2]string{from, to})
	}
	return err
}

// undo renames all files back, the last first.
func (r renames) undo() (err error) {
	for _, pair := range slices.Backward(r) {
		err = errors.Join(err, os.Rename(pair[1], pair[0]))
	}
	return err
}

// mostAside limits the search for a free name.
const mostAside = 1000

// freeName returns the first free name for an old folder.
func freeName(folder string) (to string, err error) {
	for i := range mostAside {
		to = folder + ".old"
		if i > 0 {
			to += "-" + strconv.Itoa(i+1)
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, nil
		}
	}
	return "", fmt.Errorf("%s: %d old folders are beside it", folder, mostAside)
}

// settle syncs all files and folders below a folder, and gives them to the owner.
func settle(folder string, owner *Owner) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = owner.own(path)
		}
		if err == nil {
			err = syncPath(path, entry)
		}
		return err
	})
}

func syncPath(path string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return syncFolder(path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// clean removes the hidden folders, and the empty folders that this run created.
func (p *place) clean() (err error) {
	for _, folder := range []string{p.hidden, p.hiddenWAL} {
		if folder != "" {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}
	for _, folder := range slices.Backward(p.created) {
		err = errors.Join(err, os.Remove(folder))
	}
	return err
}
