// Package pattern compiles regular expressions at their first use: a command needs few of them, and
// each start of the program would pay for all.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a regular expression, compiled once.
type Lazy func() *regexp.Regexp

// New returns the expression of a text, and panics at its first use if the text is invalid.
func New(text string) Lazy {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
