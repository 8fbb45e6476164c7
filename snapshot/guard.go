package snapshot

import (
	"errors"
	"fmt"
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
			err = fmt.Errorf("%w: a page could not be read (%v)", ErrChanged, r)
		case runtime.Error:
			if !errors.Is(s.unchanged(), ErrChanged) {
				panic(r)
			}
			err = fmt.Errorf("%w: %v", ErrChanged, r)
		default:
			panic(r)
		}
	}()
	return fn()
}
