package rehearse

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// writes records the names of written objects, by verb.
type writes struct {
	sync.Mutex
	next  http.RoundTripper
	names map[string][]string
}

func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/namespaces/") && r.Method != http.MethodGet {
		w.Lock()
		w.names[r.Method] = append(w.names[r.Method], path.Base(r.URL.Path))
		w.Unlock()
	}
	return w.next.RoundTrip(r)
}

// TestSample checks that of 5,000 objects the same ones are tried each time, spread evenly over the
// list, and that the next object replaces one in deletion.
func TestSample(t *testing.T) {
	records := []map[string]string{crd("manys", "v1*", `["v1"]`, strict)}
	for i := range 5000 {
		meta := ""
		if i >= 1000 && i < 1150 {
			meta = `"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"],`
		}
		records = append(records, object("manys", "v1", fmt.Sprintf("o%04d", i), meta, `{"root":"no"}`))
	}
	w := newWorld(t, merge(records...))
	var last tried
	for i, workers := range []int{1, 7} {
		o := w.options()
		o.Sample, o.Workers = 50, workers
		seen := &writes{names: map[string][]string{}}
		config := w.api.Config
		w.api.Config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			seen.next = next
			return seen
		}
		r := w.run(t, o)
		config.WrapTransport = nil
		kind := r.kind(t, "manys")
		require.Equal(t, []int{5000, 50, 150, 100}, []int{kind.Objects, kind.Tried, kind.Terminating, kind.Failed})
		require.Equal(t, map[*finding.Code]int{codeUpdate: 50, codeApply: 50}, r.Counts)
		var want []string
		for n := range 50 {
			switch number := n * 100; number {
			case 1000, 1100: // the next objects that can be tried replace these and the one after
				want = append(want, fmt.Sprintf("o%04d", 1150+number/100-10))
			default:
				want = append(want, fmt.Sprintf("o%04d", number))
			}
		}
		slices.Sort(seen.names["PUT"])
		slices.Sort(seen.names["PATCH"])
		require.Equal(t, want, seen.names["PUT"])
		require.Equal(t, want, seen.names["PATCH"])
		if i > 0 {
			require.Equal(t, last, r)
		}
		last = r
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct{ most, total, want int }{{3, 2, 2}, {3, 3, 3}, {3, 10, 3}, {1, 1000, 1},
		{999, 1000, 999}, {1 << 62, 10, 10}} {
		s := sample{most: c.most, total: c.total}
		for range c.total {
			if s.due() {
				s.taken++
			}
		}
		require.Equal(t, c.want, s.taken, c)
	}
}
