// Package args parses command lines of transforms, for tests.
package args

import (
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/transform"
)

// Of returns a command line with flags, --NAME or --NAME=VALUE, and with words after the output.
func Of(words ...string) *transform.Args {
	set, args := Values{}, &transform.Args{}
	args.Values = set
	for _, word := range words {
		if flag, is := strings.CutPrefix(word, "--"); !is {
			args.Rest = append(args.Rest, word)
		} else if name, value, has := strings.Cut(flag, "="); has {
			set[name] = value
		} else {
			set[name] = "true"
		}
	}
	return args
}

// Values are the flags of a command line, by name.
type Values map[string]string

// IsSet implements [transform.Values].
func (v Values) IsSet(name string) bool { _, is := v[name]; return is }

// String implements [transform.Values].
func (v Values) String(name string) string { return v[name] }

// Bool implements [transform.Values].
func (v Values) Bool(name string) bool { return v[name] == "true" }

// StringSlice implements [transform.Values]: tests use no flag with several values.
func (v Values) StringSlice(string) []string { return nil }

// Duration implements [transform.Values].
func (v Values) Duration(string) (none time.Duration) { return none }
