package finding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	wrong, odd, left := &Code{Name: "wrong", Level: Error}, &Code{Name: "odd", Level: Warning},
		&Code{Name: "left", Level: Error}
	r := &Report{Ignored: []string{"left"}}
	require.False(t, r.AtLeast(Info))
	r.Add(odd.Because("b").At("/b"))
	r.Add(left.Because("never told"))
	require.True(t, r.AtLeast(Warning))
	require.False(t, r.AtLeast(Error))
	r.Add(odd.Because("a").At("/a"))
	for range MaxListed + 1 {
		r.Add(wrong.Because("w"))
	}
	r.Sort()
	require.Equal(t, map[*Code]int{wrong: MaxListed + 1, odd: 2}, r.Counts)
	require.Len(t, r.Of(wrong), MaxListed)
	require.Equal(t, []string{"a", "b"}, []string{r.Of(odd)[0].Reason, r.Of(odd)[1].Reason})
	require.Equal(t, wrong, r.Findings[0].Code)
	require.Equal(t, []int{MaxListed + 1, 2, 0}, []int{r.Count(Error), r.Count(Warning), r.Count(Info)})
}
