package calico

import (
	"errors"
	"fmt"
)

// refusal is why a record cannot be migrated: a problem code and a reason a person can read.
type refusal struct {
	code   string
	reason string
}

func (r *refusal) Error() string { return r.reason }

// refuse makes the error of a record that cannot be migrated.
func refuse(code, format string, args ...any) error {
	return &refusal{code: code, reason: fmt.Sprintf(format, args...)}
}

// asRefusal says whether err is about the record, and not about reading the snapshot.
func asRefusal(err error) (*refusal, bool) {
	var r *refusal
	ok := errors.As(err, &r)
	return r, ok
}

// note is a warning about a record that is migrated all the same.
type note struct {
	code   string
	reason string
}
