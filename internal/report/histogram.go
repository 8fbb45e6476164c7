package report

import (
	"maps"
	"slices"
	"time"
)

const (
	mostBins    = 4096 // kept while adding events
	mostPeriods = 36   // of an Activity
	fewOutside  = 2    // events before the first period, if five percent are fewer
)

// widths returns the possible bin widths, in seconds. Each divides the next.
func widths() []int64 {
	const minute, hour, day = 60, 3600, 86400
	return []int64{1, 10, minute, 10 * minute, hour, 6 * hour, day, 7 * day, 28 * day, 336 * day}
}

// histogram counts events by time. The width of its bins grows with the range of times, so that the
// number of bins is bounded.
type histogram struct {
	widths []int64 // remaining widths; the first is the current bin width
	bins   map[int64]Events
}

func newHistogram() histogram { return histogram{widths(), map[int64]Events{}} }

func (h *histogram) add(at int64, e Events) {
	bin := h.bins[at/h.widths[0]]
	bin.plus(e)
	h.bins[at/h.widths[0]] = bin
	for len(h.bins) > mostBins && len(h.widths) > 1 {
		h.coarsen()
	}
}

func (h *histogram) coarsen() {
	ratio, coarse := h.widths[1]/h.widths[0], map[int64]Events{}
	for i, e := range h.bins {
		bin := coarse[i/ratio]
		bin.plus(e)
		coarse[i/ratio] = bin
	}
	h.widths, h.bins = h.widths[1:], coarse
}

// periods returns the finest periods that contain nearly all events, and the events before and
// after the periods. A few wrong clocks therefore do not stretch the periods.
func (h *histogram) periods() (width int64, spans []Span, earlier, later Events) {
	for {
		first, last, outside := h.window()
		if outside && len(h.widths) > 1 {
			h.coarsen()
			continue
		}
		spans = []Span{}
		for i := first; i <= last && len(h.bins) > 0; i++ {
			spans = append(spans, Span{time.Unix(i*h.widths[0], 0).UTC(), h.bins[i]})
		}
		for i, e := range h.bins {
			switch {
			case i < first:
				earlier.plus(e)
			case i > last:
				later.plus(e)
			}
		}
		return h.widths[0], spans, earlier, later
	}
}

// window returns the last mostPeriods bins after dropping the newest half percent of all events,
// and reports whether more than five percent, and more than a few events, are earlier.
func (h *histogram) window() (first, last int64, outside bool) {
	total := 0
	for _, e := range h.bins {
		total += e.total()
	}
	order := slices.Sorted(maps.Keys(h.bins))
	behind, before := 0, 0
	for i, bin := range slices.Backward(order) {
		if last = bin; (behind+h.bins[bin].total())*200 > total {
			order = order[:i+1]
			break
		}
		behind += h.bins[bin].total()
	}
	first = last
	for _, bin := range order {
		if bin <= last-mostPeriods {
			before += h.bins[bin].total()
		} else {
			first = min(first, bin)
		}
	}
	return first, last, before > max(total/20, fewOutside)
}
