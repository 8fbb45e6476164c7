package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/etcdshift/etcdshift/internal/phrase"
)

// Letter width and margin in a chart, in chart units.
const (
	letter = 7.4
	margin = 6
)

// chart shows events by period, as columns.
type chart struct {
	Form          string // "wide", or "tall" for phones
	Width, Height int
	Bars          []block
	Lines         []rule
	Labels        []label
	Text          string
}

// block is a part of a column.
type block struct{ X, Y, W, H, Group, Title string } // Group is the CSS class of its events

// rule is a horizontal line with a number.
type rule struct{ X1, X2, Y, Name string }

// label is the time of a period, below its column.
type label struct{ X, Y, Name, Anchor string }

// Edges of a chart around its columns.
const (
	chartLeft   = 52
	chartBottom = 26
	chartTop    = 10
)

func source(how How) string {
	switch how {
	case ByRevision:
		return "about, by revision: from objects written next to it"
	case ByNothing:
		return "no time known"
	}
	return string(how)
}

// period is a named period with its events; the name may also be "earlier" or "later".
type period struct {
	Name string
	Events
}

// periods returns the table rows of a chart, without empty periods.
func periods(a *Activity) []period {
	all := []period{{"earlier", a.Earlier}}
	for _, s := range a.Periods {
		all = append(all, period{s.From.Format(layout(a.Width, false)), s.Events})
	}
	all = append(all, period{"later", a.Later}, period{"no time known", a.Undated})
	return slices.DeleteFunc(all, func(p period) bool { return p.Events == Events{} })
}

// width describes the length of a period.
func width(seconds int64) string {
	switch {
	case seconds == 1:
		return "second by second"
	case seconds == 60:
		return "minute by minute"
	case seconds == 3600:
		return "hour by hour"
	case seconds == 86400:
		return "day by day"
	case seconds < 60:
		return "by " + phrase.Count(int(seconds), "second")
	case seconds < 3600:
		return "by " + phrase.Count(int(seconds/60), "minute")
	case seconds < 86400:
		return "by " + phrase.Count(int(seconds/3600), "hour")
	}
	return "by " + phrase.Count(int(seconds/86400), "day")
}

// layout returns the time layout for a period; short omits the parts common to all periods.
func layout(seconds int64, short bool) string {
	switch {
	case seconds >= 86400:
		return time.DateOnly
	case short && seconds < 60:
		return "15:04:05"
	case short:
		return "01-02 15:04"
	case seconds < 60:
		return "2006-01-02 15:04:05"
	}
	return "2006-01-02 15:04"
}

// charts returns the charts for wide screens and for phones.
func charts(a *Activity) []chart {
	var out []chart
	for _, c := range []chart{{Form: "wide", Width: 1000, Height: 220}, {Form: "tall", Width: 400, Height: 220}} {
		c.draw(a)
		out = append(out, c)
	}
	return out
}

func (c *chart) draw(a *Activity) {
	most := 1
	for _, s := range a.Periods {
		most = max(most, s.Created+s.Changed+s.Deleted)
	}
	top := ceiling(most)
	high := float64(c.Height - chartBottom - chartTop)
	step := float64(c.Width-chartLeft) / float64(len(a.Periods))
	y := func(n int) float64 { return float64(c.Height-chartBottom) - high*float64(n)/float64(top) }
	for _, n := range []int{0, top / 2, top} {
		if n == top/2 && top%2 == 1 {
			continue
		}
		c.Lines = append(c.Lines, rule{tenths(chartLeft), tenths(float64(c.Width)), tenths(y(n)), number(n)})
	}
	for i, s := range a.Periods {
		x, below := chartLeft+float64(i)*step, 0
		for _, e := range []struct {
			class string
			n     int
		}{{"created", s.Created}, {"changed", s.Changed}, {"deleted", s.Deleted}} {
			if e.n > 0 {
				c.Bars = append(c.Bars, block{
					X: tenths(x + step*0.12), Y: tenths(y(below + e.n)), W: tenths(min(step*0.76, 40)),
					H: tenths(y(below) - y(below+e.n)), Group: e.class,
					Title: fmt.Sprintf("%s: %s %s", s.From.Format(layout(a.Width, false)), number(e.n), e.class),
				})
				below += e.n
			}
		}
	}
	c.label(a, step)
	c.Text = fmt.Sprintf("%d periods, at most %d events in one; the table below has the numbers", len(a.Periods), most)
}

// label adds as many period labels as fit.
func (c *chart) label(a *Activity, step float64) {
	y, end := tenths(float64(c.Height-8)), 0.0
	for i, s := range a.Periods {
		name := s.From.Format(layout(a.Width, true))
		x, wide := chartLeft+float64(i)*step+step*0.12, letter*float64(len(name))
		if x >= end && x+wide <= float64(c.Width) {
			c.Labels = append(c.Labels, label{tenths(x), y, name, "start"})
			end = x + wide + 2*margin
		}
	}
}

// ceiling returns the next round number: 1, 2, 4, 5 or 8 times a power of ten.
func ceiling(n int) int {
	for power := 1; ; power *= 10 {
		for _, digit := range []int{1, 2, 4, 5, 8} {
			if digit*power >= n {
				return digit * power
			}
		}
	}
}
