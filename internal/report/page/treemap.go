package page

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/inspect"
)

// treemap shows what fills the database: each tile has the area of its bytes.
type treemap struct {
	Form          string // "wide", or "tall" for a phone
	Width, Height int
	Tiles         []tile
	Legend        []tile // of groups, without places
}

// tile is a part of the database. Places are in tenths of a unit.
type tile struct {
	X, Y, W, H string
	Group      string // the class of its colour
	Name, Size string
	Title      string // both, and the share
	Text, Sub  bool   // there is room for the name, and below it for the size
}

// weight is a tile without its place.
type weight struct {
	group, name string
	bytes       int64
}

// Tiles of one group; the smaller ones are one tile together.
const (
	mostLive    = 30
	mostHistory = 12
)

// groupNames are the legend, by class.
func groupNames() [][2]string {
	return [][2]string{{"live", "live values"}, {"past", "history"}, {"free", "free pages"}, {"rest", "overhead"}}
}

// treemaps are the forms for a desk and for a phone.
func treemaps(s *inspect.Sizes) []treemap {
	all := weights(s)
	var out []treemap
	for _, form := range []treemap{{Form: "wide", Width: 1000, Height: 460}, {Form: "tall", Width: 400, Height: 560}} {
		form.layOut(all, s.Image)
		out = append(out, form)
	}
	return out
}

// weights are the parts by group.
func weights(s *inspect.Sizes) [][]weight {
	live := parts("live", s.Resources, mostLive, func(r inspect.Share) int64 { return r.Live })
	past := parts("past", s.Resources, mostHistory, func(r inspect.Share) int64 { return r.History })
	// Records that --prefix leaves out are in the totals alone.
	live = fill(live, "live", s.Live.Bytes)
	past = fill(past, "past", s.Superseded.Bytes+s.Tombstones.Bytes)
	return [][]weight{live, past, {{"free", "free pages", s.FreePages}}, {{"rest", "overhead", s.Overhead}}}
}

// parts are the largest resources by one of their sizes.
func parts(group string, shares []inspect.Share, most int, of func(inspect.Share) int64) (out []weight) {
	for _, s := range shares {
		if of(s) > 0 {
			out = append(out, weight{group, s.Name, of(s)})
		}
	}
	slices.SortStableFunc(out, func(a, b weight) int { return cmp.Compare(b.bytes, a.bytes) })
	return first(out, most)
}

// fill adds what is missing to a total.
func fill(all []weight, group string, total int64) []weight {
	for _, w := range all {
		total -= w.bytes
	}
	if total > 0 {
		all = append(all, weight{group, "all others", total})
	}
	return all
}

func sum(all []weight) (total int64) {
	for _, w := range all {
		total += max(w.bytes, 0)
	}
	return total
}

// layOut places the groups, and the tiles in each.
func (t *treemap) layOut(groups [][]weight, image int64) {
	var whole []weight
	of := map[string][]weight{}
	for i, group := range groups {
		name := groupNames()[i]
		whole = append(whole, weight{group: name[0], name: name[1], bytes: sum(group)})
		of[name[0]] = group
		t.Legend = append(t.Legend, tile{Group: name[0], Name: name[1], Size: size(sum(group)), Title: percent(sum(group), image)})
	}
	slices.SortStableFunc(whole, func(a, b weight) int { return cmp.Compare(b.bytes, a.bytes) })
	squarify(whole, rect{0, 0, float64(t.Width), float64(t.Height)}, func(w weight, at rect) {
		squarify(of[w.group], at, func(w weight, at rect) { t.Tiles = append(t.Tiles, newTile(w, at, image)) })
	})
}

// Sizes of letters in the map, in its units.
const (
	letter = 7.4
	margin = 6
	line1  = 20
	line2  = 36
)

func newTile(w weight, at rect, image int64) tile {
	at = at.rounded()
	name, bytes := data(w.name), size(w.bytes)
	out := tile{
		X: tenths(at.x), Y: tenths(at.y), W: tenths(at.w), H: tenths(at.h), Group: w.group, Size: bytes,
		Title: groupName(w.group) + ": " + name + ", " + bytes + ", " + percent(w.bytes, image),
	}
	room := int((at.w - 2*margin) / letter)
	out.Name = short(name, room)
	out.Text = at.h >= line1+4 && room >= min(len(name), 5)
	out.Sub = out.Text && at.h >= line2+4 && room >= len(bytes)
	return out
}

func groupName(class string) string {
	for _, g := range groupNames() {
		if g[0] == class {
			return g[1]
		}
	}
	return class
}

// short cuts a name to so many letters; those beyond ASCII count twice.
func short(name string, room int) string {
	width, cut := 0, 0 // where the dots fit behind it
	for i, r := range name {
		if width < room {
			cut = i
		}
		if width++; r > 0x7f {
			width++
		}
	}
	if width <= room {
		return name
	}
	return name[:cut] + "…"
}

// tenths formats a length.
func tenths(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
