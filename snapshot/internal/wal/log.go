package wal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/finding"
)

var (
	// ErrMissing is the error for a folder without a log.
	ErrMissing = errors.New("no log")
	// ErrDamaged is the error for a log that etcd never writes.
	ErrDamaged = errors.New("damaged")
	// ErrUnusable is the error for a data directory whose log is missing, is damaged, or does not
	// continue the database; see func Unusable.
	ErrUnusable = finding.WithLasting(errors.New("the log does not continue the database"),
		"use the data directory of another member; or give the file member/snap/db, which is the database without the "+
			"latest writes")
	errNoLog = finding.WithLasting(ErrUnusable, "if etcd keeps its log elsewhere (etcd --wal-dir), save a snapshot "+
		"with both folders: etcdshift save --data-dir DIR --wal-dir WAL OUT; else use the data directory of another "+
		"member, or the file member/snap/db, which is the database without the latest writes")
)

// OpenNow opens a file for reading, and does not wait for the writer of a named pipe.
func OpenNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Changed reports whether a file of the log differs from the file that was read.
func (l *Log) Changed() bool {
	for _, f := range l.files {
		now, err := os.Stat(filepath.Join(l.dir, f.name))
		if err != nil || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
			return true
		}
	}
	return false
}

// Unusable makes an error of the log one of its data directory.
func Unusable(err error) error {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, ErrMissing):
		return fmt.Errorf("%w: %w", errNoLog, err)
	}
	return fmt.Errorf("%w: %w", ErrUnusable, err)
}

// UnusableIfDamaged is Unusable for an error of the log among others.
func UnusableIfDamaged(err error) error {
	if errors.Is(err, ErrDamaged) {
		return Unusable(err)
	}
	return err
}

// Log is the log of a member, after a scan.
type Log struct {
	Node, Cluster uint64 // ids of the member and its cluster
	Term, Commit  uint64 // the last state: Commit is the last entry known to be committed
	// First and Last are the entries of the log. After a snapshot from the leader, only later
	// entries count: First is then the entry after the snapshot, and may be Last+1.
	// First is 0 in a log without entries.
	First, Last uint64
	Replaced    int // entries overwritten by a later leader
	// Restored is the number of entries with which a restore began the log; 0 for a log that began
	// with an empty store, or whose beginning is gone.
	Restored uint64
	// Damage is the first damage, after the last entry; ErrDamaged.
	Damage error
	// Torn describes an incomplete record at the end, "" for none. A server removes it.
	Torn string

	dir      string
	files    []file
	begin    Position // where entry First may be at the earliest
	cuts     []cut    // with ascending positions and indexes
	metadata []byte
	snapshot uint64 // index of the last snapshot record
}

// file is a file of the log.
type file struct {
	name       string
	seq, first uint64 // of the name
	info       fs.FileInfo
}

// cut is the place of an entry that replaces all earlier entries from its index on.
type cut struct {
	at    Position
	index uint64
}

// Scan reads the files of a folder that a server needs for the entries from a number on: all
// files with from 0. Errors wrap ErrMissing, ErrDamaged or an error of the file system.
func Scan(ctx context.Context, dir string, from uint64) (*Log, error) {
	l, err := ScanSound(ctx, dir, from)
	if err == nil && l.Damage != nil {
		err = l.Damage
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// ScanSound is Scan up to the first damage.
func ScanSound(ctx context.Context, dir string, from uint64) (*Log, error) {
	l := &Log{dir: dir}
	if err := l.list(from); err != nil {
		return nil, err
	}
	l.Last = max(l.files[0].first, 1) - 1 // the end of the file before
	var crc uint32
	for i := range l.files {
		err := l.read(ctx, i, &crc, l.scan)
		if errors.Is(err, ErrDamaged) {
			l.Damage, l.Commit = err, min(l.Commit, l.Last)
			break
		}
		if err != nil {
			return nil, err
		}
	}
	switch last := filepath.Join(dir, l.files[len(l.files)-1].name); {
	case l.Damage != nil && (l.metadata == nil || l.First == 0):
		return nil, l.Damage
	case l.metadata == nil:
		return nil, fmt.Errorf("%w: %s: it names no member", ErrDamaged, last)
	case l.Commit > l.Last:
		return nil, fmt.Errorf("%w: %s: entry %d is committed, but the log ends with entry %d", ErrDamaged, last,
			l.Commit, l.Last)
	}
	return l, nil
}

// list finds the files. A file whose successor begins at or before entry from is left out.
func (l *Log) list(from uint64) error {
	names, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s does not exist", ErrMissing, l.dir)
	}
	if err != nil {
		return err
	}
	for _, entry := range names {
		f, is := parseName(entry.Name())
		if !is {
			continue // such as 0.tmp, which etcd prepares for later
		}
		if f.info, err = entry.Info(); err != nil {
			return err
		}
		if !f.info.Mode().IsRegular() || f.info.Size() > maxFile {
			return fmt.Errorf("%w: %s: not a file of a log, which has at most %d bytes", ErrDamaged,
				filepath.Join(l.dir, f.name), int64(maxFile))
		}
		l.files = append(l.files, f)
	}
	slices.SortFunc(l.files, func(a, b file) int { return cmp.Compare(a.seq, b.seq) })
	if len(l.files) == 0 {
		return fmt.Errorf("%w: %s holds no file of a log (*.wal)", ErrMissing, l.dir)
	}
	for i := len(l.files) - 1; i > 0; i-- {
		if l.files[i].first <= from {
			l.files = l.files[i:]
			break
		}
		if l.files[i].seq != l.files[i-1].seq+1 {
			return fmt.Errorf("%w: %s: the file before %s is missing", ErrDamaged, l.dir, l.files[i].name)
		}
	}
	return nil
}

// parseName decodes the name of a file: its number and the index of its first entry.
func parseName(name string) (f file, is bool) {
	if len(name) != 37 || name[16] != '-' || name[33:] != ".wal" {
		return f, false
	}
	seq, err := strconv.ParseUint(name[:16], 16, 64)
	first, bad := strconv.ParseUint(name[17:33], 16, 64)
	return file{name: name, seq: seq, first: first}, err == nil && bad == nil
}

// read calls fn with each record of file i. crc is the checksum so far, 0 for none.
func (l *Log) read(ctx context.Context, i int, crc *uint32, fn func(at Position, rec *record) error) (err error) {
	path := filepath.Join(l.dir, l.files[i].name)
	f, err := OpenNow(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d := &decoder{in: bufio.NewReaderSize(f, 1<<20), size: l.files[i].info.Size(), last: i == len(l.files)-1, crc: *crc}
	var rec record
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err = d.next(&rec)
		if err == nil {
			err = fn(Position{i, rec.at}, &rec)
		}
		if err != nil {
			break
		}
	}
	*crc = d.crc
	if err == io.EOF {
		err = d.checkEnd()
	}
	switch {
	case errors.Is(err, errTorn):
		l.Torn = fmt.Sprintf("%s ends at offset %d with a %v", path, rec.at, err)
		return nil
	case err == nil || errors.Is(err, ErrDamaged) || errors.As(err, new(*fs.PathError)) || errors.Is(err, errStop):
		return err
	}
	return fmt.Errorf("%w: %s: offset %d: %w", ErrDamaged, path, rec.at, err)
}

// scan checks a record and updates l.
func (l *Log) scan(at Position, rec *record) (err error) {
	switch rec.kind {
	case typeCRC:
	case typeMetadata:
		if l.metadata != nil && !bytes.Equal(l.metadata, rec.data) {
			return errors.New("it belongs to another member")
		}
		l.metadata = bytes.Clone(rec.data)
		if l.metadata == nil {
			l.metadata = []byte{}
		}
		l.Node, l.Cluster, err = numbers(rec.data, 1, 2)
	case typeState:
		l.Term, l.Commit, err = numbers(rec.data, 1, 3)
	case typeSnapshot:
		var term uint64
		l.snapshot, term, err = numbers(rec.data, 1, 2)
		if err == nil && l.snapshot > math.MaxInt64 {
			err = fmt.Errorf("a snapshot of entry %d", l.snapshot)
		}
		if err == nil && l.snapshot > l.Last {
			l.begin, l.First, l.Last, l.cuts = at, l.snapshot+1, l.snapshot, nil
		}
		if l.snapshot > 0 && term == restoreTerm && l.files[at.File].seq == 0 {
			l.Restored = l.snapshot
		}
	case typeEntry:
		var e Entry
		if e, err = parseEntry(rec.data); err == nil {
			err = l.add(e.Index, at)
		}
	default:
		err = fmt.Errorf("a record of type %d", rec.kind)
	}
	return err
}

// restoreTerm is the term of a snapshot by "etcdutl snapshot restore". The first leader of a
// cluster has a later term.
const restoreTerm = 1

// add adds the entry with an index.
func (l *Log) add(index uint64, at Position) error {
	switch {
	case index > l.Last+1:
		return fmt.Errorf("entry %d follows entry %d: entries are missing", index, l.Last)
	case l.First == 0: // the first entry read
		l.First = index
	case index < l.First:
		l.begin, l.First, l.cuts, l.Replaced = at, index, nil, l.Replaced+int(l.Last-l.First+1)
	case index <= l.Last:
		l.Replaced += int(l.Last - index + 1)
		for n := len(l.cuts); n > 0 && l.cuts[n-1].index >= index; n-- {
			l.cuts = l.cuts[:n-1]
		}
		l.cuts = append(l.cuts, cut{at, index})
	}
	l.Last = index
	return nil
}

// numbers returns two numbers of a protobuf message.
func numbers(msg []byte, a, b protowire.Number) (x, y uint64, err error) {
	err = eachField(msg, func(num protowire.Number, n uint64, _ []byte) error {
		switch num {
		case a:
			x = n
		case b:
			y = n
		}
		return nil
	})
	return x, y, err
}
