package encoding

import "errors"

// pathError is a reason with its field path, such as "metadata.ownerReferences[1].uid".
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }

func (e *pathError) Unwrap() error { return e.err }

// at puts the field name in front of the path of err.
func at(name string, err error) error {
	if err == nil {
		return nil
	}
	var inner *pathError
	if !errors.As(err, &inner) {
		return &pathError{path: name, err: err}
	}
	if inner.path[0] == '[' {
		return &pathError{path: name + inner.path, err: inner.err}
	}
	return &pathError{path: name + "." + inner.path, err: inner.err}
}
