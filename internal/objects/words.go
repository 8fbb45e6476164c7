package objects

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/phrase"
)

// Word is a TYPE of a command line, or several with commas between, and the names of objects behind
// it; nil for all.
type Word struct {
	Type  string
	Names []string
}

// ParseWords reads TYPE [NAME...] or TYPE/NAME..., as kubectl does.
func ParseWords(words []string) (out []Word, err error) {
	slashed := 0
	for _, w := range words {
		if strings.Contains(w, "/") {
			slashed++
		}
	}
	var names []string
	switch slashed {
	case len(words):
	case 0:
		words, names = words[:1], words[1:]
	default:
		return nil, fmt.Errorf("give either TYPE/NAME for all, or one TYPE and names: %q", words)
	}
	for _, word := range words {
		kind, name, named := strings.Cut(word, "/")
		if kind == "" || named && name == "" {
			return nil, fmt.Errorf("%q is neither TYPE nor TYPE/NAME", word)
		}
		one := Word{Type: kind}
		if named {
			one.Names = []string{name}
		} else if len(names) > 0 {
			one.Names = names
		}
		out = append(out, one)
	}
	return out, nil
}

// Namesakes names the namespaces that have an object of a name, the first five in order, behind a
// message that the object is not in the namespace asked for; "" for none.
func Namesakes(spaces []string) string {
	if len(spaces) == 0 {
		return ""
	}
	return "; it is in namespace " + phrase.List(slices.Compact(slices.Sorted(slices.Values(spaces))), 5)
}
