package fleet

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

// TestHostileReports checks that any report is read in bounded memory.
func TestHostileReports(t *testing.T) {
	s := Snapshot{Path: "a.db", Bytes: 1}
	good := reportOf(s, transform.Written)
	with := func(field string) string { return "{" + field + "," + good[1:] }
	r, err := parseReport(strings.NewReader(with(`"uids":[` + strings.Repeat(`{"name":["x",1,null]},`, 1e5) + `{}]`)))
	require.NoError(t, err)
	require.NoError(t, r.checkInput(s))
	for _, text := range []string{
		"", "[]", "null", "7", good + "x", good + good, good[:len(good)-1],
		`{"apiVersion":"etcdshift/v1","kind":"Report","outcome":"odd"}`,
		with(`"x":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5)),
		with(`"x":"` + strings.Repeat("y", 9<<20) + `"`),
		with(`"input":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5)),
		with(`"x":"` + strings.Repeat(" ", 9<<20)),
		with(`"problems":7`), with(`"problems":[7]`), with(`"problems":[{"code":"` + strings.Repeat("c", 200) + `"}]`),
	} {
		_, err := parseReport(strings.NewReader(text))
		require.ErrorIs(t, err, ErrNotReport, "%.80s", text)
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `{"code":"c%d"},`, i)
	}
	_, err = parseReport(strings.NewReader(with(`"problems":[` + many.String() + `{}]`)))
	require.ErrorContains(t, err, "too many codes")
}

// TestKept checks that the kept part of a report is small, regardless of its texts.
func TestKept(t *testing.T) {
	s := Snapshot{Path: "a.db", Bytes: 1}
	good, long := reportOf(s, transform.Failed), strings.Repeat("y", 3<<20)
	_, err := parseReport(strings.NewReader(good)) // builds the tables of redaction
	require.NoError(t, err)
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // a sync.Pool keeps its values for one collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var all []*found
	for range 5 {
		r, err := parseReport(strings.NewReader(`{"error":"` + long + `",` + good[1:]))
		require.NoError(t, err)
		all = append(all, r)
	}
	require.Less(t, heap()-before, int64(2<<20))
	require.Len(t, all[0].Error, mostError)
	_, err = parseReport(strings.NewReader(`{"output":{"path":"` + long + `"},` + good[1:]))
	require.ErrorIs(t, err, ErrNotReport)
}
