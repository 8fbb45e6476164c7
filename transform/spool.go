package transform

import (
	"fmt"
	"os"

	"github.com/etcdshift/etcdshift/internal/publish"
)

// spool is an append-only sequence of bytes: the last bytes in memory, the others in a scratch
// file.
type spool struct {
	dir    string   // of the scratch file
	file   *os.File // nil until memory is full
	stored int64    // bytes in the file
	memory []byte   // the bytes after the file
}

// memoryLimit is the number of bytes that a spool keeps in memory.
const memoryLimit = 4 << 20

// add appends a record of two parts and returns its offset.
func (s *spool) add(key, value []byte) (at int64, err error) {
	at = s.stored + int64(len(s.memory))
	s.memory = append(append(s.memory, key...), value...)
	if len(s.memory) <= memoryLimit {
		return at, nil
	}
	if s.file == nil {
		s.file, err = publish.Scratch(s.dir)
	}
	if err == nil {
		_, err = s.file.WriteAt(s.memory, s.stored)
	}
	s.stored += int64(len(s.memory))
	s.memory = s.memory[:0]
	if cap(s.memory) > 2*memoryLimit {
		s.memory = nil
	}
	return at, s.wrap(err)
}

// read fills out with the bytes of one record at an offset.
func (s *spool) read(out []byte, at int64) error {
	if at >= s.stored {
		copy(out, s.memory[at-s.stored:])
		return nil
	}
	_, err := s.file.ReadAt(out, at)
	return s.wrap(err)
}

func (s *spool) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("scratch file in %q: %w", s.dir, err)
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// spoolReader reads the records of a spool, mostly in sequence. A result is valid until the next
// call.
type spoolReader struct {
	*spool
	at     int64
	window []byte // the bytes at offset at
}

// windowSize is the number of bytes that a spoolReader reads at once.
const windowSize = 256 << 10

func (r *spoolReader) next(at int64, n int) ([]byte, error) {
	if at < r.at || at+int64(n) > r.at+int64(len(r.window)) {
		size := int64(max(n, windowSize))
		if at < r.stored {
			size = min(size, r.stored-at)
		} else {
			size = min(size, r.stored+int64(len(r.memory))-at)
		}
		if int64(cap(r.window)) < size {
			r.window = make([]byte, size)
		}
		r.at, r.window = at, r.window[:size]
		if err := r.read(r.window, at); err != nil {
			r.window = nil
			return nil, err
		}
	}
	return r.window[at-r.at:][:n], nil
}
