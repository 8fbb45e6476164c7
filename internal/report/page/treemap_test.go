package page

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
)

// TestTreemap: tiles have the area of their bytes, lie inside the map, and do not overlap.
func TestTreemap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := &inspect.Sizes{FreePages: random.Int64N(1e6), Overhead: random.Int64N(1e5)}
		for i := range random.IntN(60) {
			r := inspect.Share{Name: strconv.Itoa(i), Live: int64(math.Exp(random.Float64() * 18)), History: random.Int64N(1e6) * int64(random.IntN(2))}
			s.Live.Bytes, s.Superseded.Bytes = s.Live.Bytes+r.Live, s.Superseded.Bytes+r.History
			s.Resources = append(s.Resources, r)
		}
		s.Image = s.Live.Bytes + s.Superseded.Bytes + s.FreePages + s.Overhead
		var all []weight
		for _, group := range weights(s) {
			all = append(all, group...)
		}
		require.Equal(t, s.Image, sum(all))
		for _, m := range treemaps(s) {
			requireTiled(t, m)
		}
	}
}

func requireTiled(t *testing.T, m treemap) {
	t.Helper()
	var places []rect
	area := 0.0
	for _, tile := range m.Tiles {
		var n [4]float64
		for i, text := range []string{tile.X, tile.Y, tile.W, tile.H} {
			var err error
			n[i], err = strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n[i], 0.0)
		}
		at := rect{n[0], n[1], n[2], n[3]}
		require.LessOrEqual(t, at.x+at.w, float64(m.Width)+0.01)
		require.LessOrEqual(t, at.y+at.h, float64(m.Height)+0.01)
		area += at.w * at.h
		require.False(t, slices.ContainsFunc(places, func(o rect) bool {
			const edge = 0.01
			return at.x+edge < o.x+o.w && o.x+edge < at.x+at.w && at.y+edge < o.y+o.h && o.y+edge < at.y+at.h
		}), "%v overlaps", at)
		places = append(places, at)
	}
	if len(m.Tiles) > 0 {
		require.InEpsilon(t, float64(m.Width*m.Height), area, 0.01)
	}
}

// TestSquarify: the example of the paper: 6, 6, 4, 3, 2, 2 and 1 in a place of 6 by 4.
func TestSquarify(t *testing.T) {
	var all []weight
	for _, n := range []int64{6, 6, 4, 3, 2, 2, 1} {
		all = append(all, weight{bytes: n})
	}
	var got []rect
	squarify(all, rect{0, 0, 6, 4}, func(w weight, at rect) {
		require.InDelta(t, float64(w.bytes), at.w*at.h, 1e-9)
		got = append(got, at)
	})
	for i, want := range []rect{{0, 0, 3, 2}, {0, 2, 3, 2}, {3, 0, 12. / 7, 7. / 3}, {3 + 12./7, 0, 9. / 7, 7. / 3}} {
		require.InDeltaSlice(t, []float64{want.x, want.y, want.w, want.h}, []float64{got[i].x, got[i].y, got[i].w, got[i].h}, 1e-9)
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]string{"pods": "pods", "configmaps": "confi…", "日本語日本": "日本…", "": ""} {
		require.Equal(t, want, short(name, 6), name)
	}
	require.Equal(t, "…", short("日本", 1))
	require.Equal(t, "日…", short("日本", 3))
	require.Equal(t, "…", short("abc", 0))
}
