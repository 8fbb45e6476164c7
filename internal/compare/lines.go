package compare

import "strings"

// Line is a line of two texts: ' ' of both, '-' of the old, '+' of the new. '@' stands for omitted
// lines of both.
type Line struct {
	Op   byte
	Text string // without its line end
}

// Lines compares two texts and keeps some lines around each difference.
func Lines(old, new string, around int) []Line {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	var all []Line
	i, j := 0, 0
	for _, p := range append(common(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }), [2]int{len(a), len(b)}) {
		for ; i < p[0]; i++ {
			all = append(all, Line{'-', a[i]})
		}
		for ; j < p[1]; j++ {
			all = append(all, Line{'+', b[j]})
		}
		if i < len(a) && j < len(b) {
			all = append(all, Line{' ', a[i]})
			i, j = i+1, j+1
		}
	}
	return near(all, around)
}

// near omits lines far from any difference.
func near(all []Line, around int) (out []Line) {
	keep := make([]bool, len(all))
	for i, line := range all {
		if line.Op != ' ' {
			for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
				keep[k] = true
			}
		}
	}
	for i, line := range all {
		switch {
		case keep[i]:
			out = append(out, line)
		case len(out) > 0 && out[len(out)-1].Op != '@' || i == 0:
			out = append(out, Line{Op: '@'})
		}
	}
	return out
}
