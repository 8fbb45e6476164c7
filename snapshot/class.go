package snapshot

import (
	"errors"
	"fmt"
)

// Class is what becomes of a restored file because of an error of [Verify] or [Odd].
type Class string

// The classes, worst first.
const (
	// Fatal: etcdutl or a server of etcd 3.4 to 3.7 dies of it, at once or when it gets there.
	Fatal Class = "fatal"
	// Lies: a server starts, and serves numbers or records that no writer stored.
	Lies Class = "lies"
	// Warning: a server lives with it.
	Warning Class = "warning"
)

// ClassOf returns the class of an error of [Open], [Verify] or [Odd]. A page that is not as etcd
// writes it is Fatal: what a server reads there is chance.
func ClassOf(err error) Class {
	switch {
	case errors.As(err, new(lie)):
		return Lies
	case errors.Is(err, errOdd) && !errors.Is(err, errNewer):
		return Warning
	}
	return Fatal
}

// lie is an error of class Lies.
type lie struct{ error }

func (l lie) Unwrap() error { return l.error }

func liesf(format string, args ...any) error { return lie{fmt.Errorf(format, args...)} }
