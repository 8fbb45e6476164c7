package sanitize

import (
	"cmp"
	"maps"
	"slices"
)

// tally counts what was replaced.
type tally struct {
	counts map[string]*Count // by type
	left   map[string]int    // texts, by the names that they keep
	texts  int               // with replaced names
	out    []LeftOut
	keys   []string        // with secrets
	moved  map[string]bool // new keys
}

func newTally() *tally {
	return &tally{counts: map[string]*Count{}, left: map[string]int{}, out: []LeftOut{}, moved: map[string]bool{}}
}

func (t *tally) add(r *record) {
	if r.drop != "" {
		t.out = append(t.out, LeftOut{string(r.Key), r.drop})
		return
	}
	if r.key != "" {
		t.keys = append(t.keys, r.key)
	}
	if r.to != nil {
		t.moved[string(r.to)] = true
	}
	if r.values > 0 {
		if t.counts[r.name] == nil {
			t.counts[r.name] = &Count{Type: r.name}
		}
		t.counts[r.name].Objects++
		t.counts[r.name].Values += r.values
	}
	t.texts += r.texts
	for name, n := range r.left {
		t.left[name] += n
	}
}

// report returns the section of the report. names is nil where names stay.
func (t *tally) report(names *dictionary, unsearched int) *Sanitized {
	out := &Sanitized{Sanitized: []Count{}, LeftOut: t.out, Keys: t.keys, Unsearched: unsearched, NotSanitized: notSanitized(names == nil)}
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		out.Sanitized = append(out.Sanitized, *t.counts[name])
	}
	if names == nil {
		return out
	}
	out.Names = &Names{
		Replaced: names.count(), Texts: t.texts, Kept: slices.Sorted(maps.Keys(names.kept)), Words: names.replaced(),
	}
	for _, name := range slices.Sorted(maps.Keys(t.left)) {
		out.Names.InTexts = append(out.Names.InTexts, Mention{name, t.left[name]})
	}
	slices.SortStableFunc(out.Names.InTexts, func(a, b Mention) int { return cmp.Compare(b.Texts, a.Texts) })
	return out
}
