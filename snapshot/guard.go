package snapshot

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
)

// addressFault is what the runtime panics with when SetPanicOnFault is on and a mapped page cannot be read.
type addressFault interface {
	error
	Addr() uintptr
}

// guard runs fn with faults of the mapping turned into errors. Checks make every access lie inside the mapping; what is left
// is a file cut short or written to by someone else after it was opened, so that what was checked is no longer what is read,
// or a disk that cannot read a sector. Any other panic goes on. It covers the calling goroutine alone.
func (s *Snapshot) guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case addressFault:
			if !s.maps(r.Addr()) { // another file's: a caller of ours may guard that
				panic(r)
			}
			err = fmt.Errorf("%w: a page of it can no longer be read", ErrChanged)
		case runtime.Error:
			if !errors.Is(s.unchanged(), ErrChanged) {
				panic(r)
			}
			err = ErrChanged
		default:
			panic(r)
		}
	}()
	return fn()
}

// maps says whether the file is mapped at addr.
func (s *Snapshot) maps(addr uintptr) bool {
	first := reflect.ValueOf(s.data).Pointer()
	return addr >= first && addr-first < uintptr(len(s.data))
}

// Guard runs fn, which reads the bytes of records, with faults of the mapped file turned into errors that name the file and wrap
// ErrChanged. It covers the calling goroutine alone.
func (s *Snapshot) Guard(fn func() error) error {
	faulted := false
	err := s.guard(func() error {
		faulted = true
		err := fn()
		faulted = false
		return err
	})
	if faulted {
		return s.wrap(err)
	}
	return err
}
