// Package nearest finds the known word that a mistyped one may stand for.
package nearest

import (
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// Word returns the known word nearest to an unknown one, "" where none is near. The only one that
// begins with the unknown word is near.
func Word(unknown string, known []string) string {
	begins := slices.DeleteFunc(slices.Clone(known), func(word string) bool { return !strings.HasPrefix(word, unknown) })
	if len(begins) == 1 && len(strings.TrimLeft(unknown, "-")) > 2 {
		return begins[0]
	}
	distance := func(a string) int { return smetrics.WagnerFischer(unknown, a, 1, 1, 1) }
	byDistance := slices.SortedStableFunc(slices.Values(known), func(a, b string) int { return distance(a) - distance(b) })
	short := len(strings.TrimLeft(unknown, "-")) < 2 // near to every short name
	if len(byDistance) == 0 || short || distance(byDistance[0]) > max(2, len(unknown)/3) {
		return ""
	}
	return byDistance[0]
}
