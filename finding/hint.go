package finding

// advice is an error with what to do about it.
type advice struct {
	error
	hint    string // "" for none
	lasting bool
}

// Unwrap returns the error without the advice.
func (a *advice) Unwrap() error { return a.error }

// Hint returns what to do about the error, "" where nothing is known.
func (a *advice) Hint() string { return a.hint }

// Lasting reports whether another try ends in the same error.
func (a *advice) Lasting() bool { return a.lasting }

// WithHint returns err with what to do about it; the text of the error stays the same.
func WithHint(err error, hint string) error { return &advice{err, hint, false} }

// WithLasting is [WithHint] for an error that a second try with the same file and command line
// meets again.
func WithLasting(err error, hint string) error { return &advice{err, hint, true} }

// Hint returns what to do about an error: the first hint, from the outside, of the errors in it
// that have a method Hint() string; "" where there is none.
func Hint(err error) (hint string) {
	within(err, func(err error) bool {
		if h, is := err.(interface{ Hint() string }); is {
			hint = h.Hint()
		}
		return hint != ""
	})
	return hint
}

// Lasting reports whether another try ends in the same error: one of the errors in it has a method
// Lasting() bool that says so.
func Lasting(err error) bool {
	return within(err, func(err error) bool {
		l, is := err.(interface{ Lasting() bool })
		return is && l.Lasting()
	})
}

// within reports whether is holds for one of the errors in err, which are asked in the order of
// [errors.As].
func within(err error, is func(error) bool) bool {
	if err == nil || is(err) {
		return err != nil
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return within(err.Unwrap(), is)
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			if within(one, is) {
				return true
			}
		}
	}
	return false
}
