package finding

// advice is an error with a hint.
type advice struct {
	error
	hint    string // "" for none
	lasting bool
}

// Unwrap returns the error without the advice.
func (a *advice) Unwrap() error { return a.error }

// Hint returns the remedy for the error; "" for none.
func (a *advice) Hint() string { return a.hint }

// Lasting reports whether another try ends in the same error.
func (a *advice) Lasting() bool { return a.lasting }

// WithHint returns err with a hint, the remedy; the text of the error stays the same.
func WithHint(err error, hint string) error { return &advice{err, hint, false} }

// WithLasting is [WithHint] for an error that recurs with the same file and command line.
func WithLasting(err error, hint string) error { return &advice{err, hint, true} }

// Hint returns the remedy for an error: the outermost hint of the errors in err that have a method
// Hint() string; "" for none.
func Hint(err error) (hint string) {
	within(err, func(err error) bool {
		if h, is := err.(interface{ Hint() string }); is {
			hint = h.Hint()
		}
		return hint != ""
	})
	return hint
}

// Lasting reports whether another try ends in the same error: a method Lasting() bool of an error
// in err returns true.
func Lasting(err error) bool {
	return within(err, func(err error) bool {
		l, is := err.(interface{ Lasting() bool })
		return is && l.Lasting()
	})
}

// within reports whether is holds for an error in err, in the order of [errors.As].
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
