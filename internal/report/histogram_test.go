package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHistogram checks that periods are as fine as possible, no event is lost, and wrong clocks do
// not stretch the periods.
func TestHistogram(t *testing.T) {
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Unix()
	for name, tc := range map[string]struct {
		times          []int64
		width          int64
		spans          int
		earlier, later int
	}{
		"none":        {nil, 1, 0, 0, 0},
		"one":         {repeat(day, 0, 1), 1, 1, 0, 0},
		"seconds":     {repeat(day, 1, 30), 1, 30, 0, 0},
		"hours":       {repeat(day, 3600, 30), 3600, 30, 0, 0},
		"years":       {repeat(day-86400*3650, 86400, 3650), 336 * 86400, 12, 0, 0},
		"a wrong one": {append(repeat(day, 1, 400), 1, 8e9), 60, 7, 1, 1},
		"widely":      {repeat(1, 1_000_000, 8000), 336 * 86400, 36, 6939, 16},
	} {
		h := newHistogram()
		for _, at := range tc.times {
			h.add(at, Events{Created: 1})
		}
		width, spans, earlier, later := h.periods()
		total := earlier.Created + later.Created
		for i, s := range spans {
			total += s.Created
			require.Equal(t, spans[0].From.Unix()+int64(i)*width, s.From.Unix())
		}
		require.Equal(t, len(tc.times), total, name)
		require.LessOrEqual(t, len(spans), mostPeriods)
		require.Equal(t, tc.spans, len(spans), name)
		require.Equal(t, tc.width, width, name)
		require.Equal(t, []int{tc.earlier, tc.later}, []int{earlier.Created, later.Created}, name)
	}
}

func repeat(from, step int64, n int) (out []int64) {
	for i := range n {
		out = append(out, from+int64(i)*step)
	}
	return out
}
