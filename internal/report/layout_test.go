package report

import (
	"fmt"
	stdhtml "html"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChartLabels checks that no chart label overlaps the next label or the edge.
func TestChartLabels(t *testing.T) {
	for n := range 45 {
		for _, seconds := range []int64{1, 3600, 86400} {
			a := &Activity{Width: seconds}
			for i := range n + 1 {
				a.Periods = append(a.Periods, Span{From: time.Unix(int64(i)*seconds, 0).UTC(),
					Events: Events{Created: 1}})
			}
			for _, c := range charts(a) {
				require.NotEmpty(t, c.Labels)
				end := 0.0
				for _, l := range c.Labels {
					x, err := strconv.ParseFloat(l.X, 64)
					require.NoError(t, err)
					require.GreaterOrEqual(t, x, end, "%d periods of %d s, %s: %s", n+1, seconds, c.Form, l.Name)
					end = x + 6.8*float64(len(l.Name)) // digits of 12 px, at their widest
				}
				require.LessOrEqual(t, end, float64(c.Width), "%d periods of %d s, %s", n+1, seconds, c.Form)
			}
		}
	}
}

// TestVerdictsOnPhone checks that each cell of a table with verdicts has its column name, for the
// stacked layout on phones.
func TestVerdictsOnPhone(t *testing.T) {
	p := read(t, recorded(t, "calico/before"), Options{})
	text := printed(t, p.HTML)
	require.Equal(t, 1, strings.Count(text, `<table class="stack">`))
	require.Contains(t, text,
		`<td data-name="Verdict"><span class="mark warning">not at the storage version</span></td>`)
}

// TestDifferencesByName checks that objects of each resource are listed, only a few of a resource
// with many, with the number of the omitted objects.
func TestDifferencesByName(t *testing.T) {
	r := recorded(t, "calico/before")
	d := read(t, r, Options{Before: recorded(t, "storage/before")}).Before
	named := map[string]int{}
	for _, o := range d.Objects {
		named[o.Resource]++
	}
	p := read(t, r, Options{Before: recorded(t, "storage/before")})
	page := printed(t, p.HTML)
	left := 0
	for _, c := range d.Summary {
		require.Equal(t, min(c.Found(), Most), named[c.Resource], c.Resource)
		if more := c.Found() - Most; more > 0 {
			left += more
			require.Contains(t, page, fmt.Sprintf("and %d more of ", more))
		}
	}
	require.Positive(t, left)
	require.Contains(t, page, fmt.Sprintf("… and %d more objects; diff shows each", left))
	for _, o := range d.Objects {
		require.Contains(t, strings.ReplaceAll(stdhtml.UnescapeString(page), "<wbr>", ""),
			"<td>"+string(o.Op)+"</td><td><code><bdi>"+o.Subject.String()+"<")
	}
}
