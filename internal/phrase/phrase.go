// Package phrase formats parts of messages: counts, lists, and suggestions for misspelled words.
package phrase

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xrash/smetrics"
)

// Count returns a number and its noun: "1 object", "2 objects".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// List joins at most the first most texts, and counts the rest: "a, b and 2 more".
func List(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// Nearest returns the known word most similar to an unknown word, or "". The only known word that
// begins with the unknown word is similar.
func Nearest(unknown string, known []string) string {
	begins := slices.DeleteFunc(slices.Clone(known),
		func(word string) bool { return !strings.HasPrefix(word, unknown) })
	if len(begins) == 1 && len(strings.TrimLeft(unknown, "-")) > 2 {
		return begins[0]
	}
	distance := func(a string) int { return smetrics.WagnerFischer(unknown, a, 1, 1, 1) }
	byDistance := slices.SortedStableFunc(slices.Values(known),
		func(a, b string) int { return distance(a) - distance(b) })
	short := len(strings.TrimLeft(unknown, "-")) < 2 // similar to every short name
	if len(byDistance) == 0 || short || distance(byDistance[0]) > max(2, len(unknown)/3) {
		return ""
	}
	return byDistance[0]
}
