package page

import "math"

// rect is a place in a map.
type rect struct{ x, y, w, h float64 }

// rounded moves the edges to tenths: neighbours keep a common edge.
func (r rect) rounded() rect {
	tenth := func(n float64) float64 { return math.Round(n*10) / 10 }
	x, y := tenth(r.x), tenth(r.y)
	return rect{x, y, tenth(r.x+r.w) - x, tenth(r.y+r.h) - y}
}

// squarify places weights, sorted by size, so that tiles are as square as can be (Bruls, Huizing
// and van Wijk, Squarified Treemaps, 2000). Areas are as the weights.
func squarify(all []weight, in rect, place func(weight, rect)) {
	left := float64(sum(all))
	for len(all) > 0 && all[0].bytes > 0 && left > 0 {
		n := row(all, in, left)
		taken := float64(sum(all[:n]))
		in = strip(all[:n], in, taken, taken/left, place)
		all, left = all[n:], left-taken
	}
}

// row returns how many weights the next strip takes: one more as long as that makes the tiles more
// square.
func row(all []weight, in rect, total float64) (n int) {
	short, area := min(in.w, in.h), in.w*in.h/total
	taken, smallest, worst := 0.0, math.Inf(1), math.Inf(1)
	largest := float64(all[0].bytes) * area
	for n = 0; n < len(all) && all[n].bytes > 0; n++ {
		one := float64(all[n].bytes) * area
		taken += one
		smallest = min(smallest, one)
		thick := taken / short
		if ratio := max(largest/(thick*thick), thick*thick/smallest); ratio > worst {
			break
		} else {
			worst = ratio
		}
	}
	return max(n, 1)
}

// strip places a row of weights along the shorter side, and returns the rest of the place.
func strip(all []weight, in rect, taken, part float64, place func(weight, rect)) rect {
	at := in
	for _, w := range all {
		share := float64(w.bytes) / taken
		if in.w >= in.h {
			at.w, at.h = in.w*part, in.h*share
			place(w, at)
			at.y += at.h
		} else {
			at.w, at.h = in.w*share, in.h*part
			place(w, at)
			at.x += at.w
		}
	}
	if in.w >= in.h {
		return rect{in.x + in.w*part, in.y, in.w * (1 - part), in.h}
	}
	return rect{in.x, in.y + in.h*part, in.w, in.h * (1 - part)}
}
