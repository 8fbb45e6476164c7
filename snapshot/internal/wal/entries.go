package wal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// errStop ends a pass over the files.
var errStop = errors.New("stop")

// Entries yields the entries from a number on, in order, without replaced entries. An Entry is
// valid until the next one.
func (l *Log) Entries(ctx context.Context, from uint64) iter.Seq2[Entry, error] {
	return stream.Of(func(yield func(Entry) error) error {
		if l.First == 0 {
			return nil
		}
		from = max(from, l.First)
		cuts := l.cuts
		want := from
		for i := l.begin.File; i < len(l.files) && want <= l.Last; i++ {
			if i+1 < len(l.files) && l.files[i+1].first <= from {
				continue
			}
			var crc uint32
			var stopped error
			err := l.read(ctx, i, &crc, func(at Position, rec *record) error {
				if rec.kind != typeEntry || at.before(l.begin) {
					return nil
				}
				e, err := parseEntry(rec.data)
				if err != nil {
					return err
				}
				for len(cuts) > 0 && !at.before(cuts[0].at) {
					cuts = cuts[1:]
				}
				if e.Index < from || len(cuts) > 0 && e.Index >= cuts[0].index {
					return nil
				}
				if e.Index != want {
					return errors.New("the log changed while it was read")
				}
				e.At = at
				want++
				if stopped = yield(e); stopped != nil || want > l.Last {
					return errStop
				}
				return nil
			})
			if stopped != nil {
				return stopped
			}
			if err != nil && !errors.Is(err, errStop) {
				return err
			}
		}
		if want <= l.Last {
			return fmt.Errorf("%w: %s: entry %d is missing", ErrDamaged, l.dir, want)
		}
		return nil
	})
}

func (p Position) before(o Position) bool {
	return p.File < o.File || p.File == o.File && p.Offset < o.Offset
}

// Each calls fn with the entries from first to last.
func (l *Log) Each(ctx context.Context, first, last uint64, fn func(Entry) error) error {
	if first > last {
		return nil
	}
	for e, err := range l.Entries(ctx, first) {
		if err != nil || e.Index > last {
			return err
		}
		if err := fn(e); err != nil || e.Index == last {
			return err
		}
	}
	return nil
}

// Read returns the entry at a position.
func (l *Log) Read(at Position) (Entry, error) {
	path := filepath.Join(l.dir, l.files[at.File].name)
	f, err := OpenNow(path)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(at.Offset, io.SeekStart); err != nil {
		return Entry{}, err
	}
	d := &decoder{in: bufio.NewReader(f), size: l.files[at.File].info.Size(), offset: at.Offset, unchecked: true}
	var rec record
	if err = d.next(&rec); err == nil && rec.kind != typeEntry {
		err = errors.New("not an entry")
	}
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %s: offset %d: %w", ErrDamaged, path, at.Offset, err)
	}
	e, err := parseEntry(rec.data)
	e.At = at
	return e, err
}

// Files returns the paths of the files.
func (l *Log) Files() (paths []string) {
	for _, f := range l.files {
		paths = append(paths, filepath.Join(l.dir, f.name))
	}
	return paths
}
