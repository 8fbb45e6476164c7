package encoding

import (
	"errors"
	"fmt"
	"time"
)

var (
	errNotObject = errors.New("not an object")
	errNotList   = errors.New("not a list")
	errNotString = errors.New("not a string")
	errNotNumber = errors.New("not a whole number")
	errNotBool   = errors.New("not true or false")
	errNotTime   = errors.New("not an RFC 3339 time")
)

// reader reads fields of decoded content and keeps the first error. Missing and null fields are
// zero.
type reader struct {
	obj map[string]any
	err error
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = at(name, err)
	}
}

// field returns the value of a field of type T.
func field[T any](r *reader, name string, wrong error) T {
	value, ok := r.obj[name].(T)
	if !ok && r.obj[name] != nil {
		r.fail(name, wrong)
	}
	return value
}

func (r *reader) str(name string) string    { return field[string](r, name, errNotString) }
func (r *reader) integer(name string) int64 { return field[int64](r, name, errNotNumber) }
func (r *reader) object(name string) map[string]any {
	return field[map[string]any](r, name, errNotObject)
}
func (r *reader) list(name string) []any { return field[[]any](r, name, errNotList) }

func (r *reader) boolean(name string) *bool {
	if r.obj[name] == nil {
		return nil
	}
	value := field[bool](r, name, errNotBool)
	return &value
}

func (r *reader) time(name string) time.Time {
	if t, is := r.obj[name].(time.Time); is { // from protobuf
		return t
	}
	text := r.str(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.fail(name, errNotTime)
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

func (r *reader) stringMap(name string) map[string]string {
	content := r.object(name)
	if len(content) == 0 {
		return nil
	}
	out := make(map[string]string, len(content))
	for key, value := range content {
		text, ok := value.(string)
		if !ok && value != nil {
			r.fail(name, at(fmt.Sprintf("[%q]", key), errNotString))
		}
		out[key] = text
	}
	return out
}

func (r *reader) stringList(name string) []string {
	var out []string
	for i, element := range r.list(name) {
		text, ok := element.(string)
		if !ok {
			r.fail(name, at(fmt.Sprintf("[%d]", i), errNotString))
		}
		out = append(out, text)
	}
	return out
}

// objects calls visit with each element of a list of objects.
func (r *reader) objects(name string, visit func(*reader)) {
	for i, element := range r.list(name) {
		obj, ok := element.(map[string]any)
		if !ok {
			r.fail(name, at(fmt.Sprintf("[%d]", i), errNotObject))
			return
		}
		inner := reader{obj: obj}
		visit(&inner)
		if inner.err != nil {
			r.fail(name, at(fmt.Sprintf("[%d]", i), inner.err))
			return
		}
	}
}

// pathError is an error with its field path, such as "metadata.ownerReferences[1].uid".
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }

func (e *pathError) Unwrap() error { return e.err }

// at puts the field name before the path of err.
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
