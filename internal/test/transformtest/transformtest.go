// Package transformtest has command lines and report sections of transforms, for tests.
package transformtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Args returns a command line with flags, --NAME or --NAME=VALUE, and with words after the output.
func Args(words ...string) *transform.Args {
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

// Files returns the Open of a command line, without an EncryptionConfiguration, for files with the
// storage prefixes. The files stay open until the test ends.
func Files(t testing.TB, prefixes ...string) func(context.Context, string, string) (*transform.File, error) {
	return func(ctx context.Context, path, _ string) (*transform.File, error) {
		s, err := snapshot.Open(ctx, path, snapshot.Config{})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = s.Close() })
		return &transform.File{Reader: inspect.NewReader(s, nil, prefixes...)}, nil
	}
}

// Values are the flags of a command line, by name.
type Values map[string]string

// IsSet implements [transform.Values].
func (v Values) IsSet(name string) bool { _, is := v[name]; return is }

// String implements [transform.Values].
func (v Values) String(name string) string { return v[name] }

// Bool implements [transform.Values].
func (v Values) Bool(name string) bool { return v[name] == "true" }

// StringSlice implements [transform.Values]: the values of a flag have commas between.
func (v Values) StringSlice(name string) []string {
	if v[name] == "" {
		return nil
	}
	return strings.Split(v[name], ",")
}

// Duration implements [transform.Values].
func (v Values) Duration(string) (none time.Duration) { return none }

// Section returns the section of a type, or an empty one.
func Section[S any](r *transform.Report) *S {
	for _, s := range append(r.Sections[:len(r.Sections):len(r.Sections)], r.Appendix) {
		if section, ok := any(s).(*S); ok {
			return section
		}
	}
	return new(S)
}
