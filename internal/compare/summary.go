package compare

import (
	"maps"
	"slices"
	"strings"
)

// Count counts the objects of a resource that differ.
type Count struct {
	Resource  string `json:"resource"` // "" for keys that are no object's
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Changed   int    `json:"changed"`
	Recreated int    `json:"recreated"`
	Folded    int    `json:"folded"` // objects of which there is nothing but noise
}

// Found returns the number of objects that differ, without noise.
func (c Count) Found() int { return c.Added + c.Removed + c.Changed + c.Recreated }

// Summary counts objects by resource. The zero value is empty.
type Summary struct{ counts map[string]Count }

// Add counts an object.
func (s *Summary) Add(o *Object) {
	if s.counts == nil {
		s.counts = map[string]Count{}
	}
	c := s.counts[o.Resource]
	c.Resource = o.Resource
	switch {
	case o.Noise:
		c.Folded++
	case o.Op == Added:
		c.Added++
	case o.Op == Removed:
		c.Removed++
	case o.Op == Recreated:
		c.Recreated++
	default:
		c.Changed++
	}
	s.counts[o.Resource] = c
}

// Rows returns the counts, sorted by resource.
func (s *Summary) Rows() []Count {
	byResource := func(a, b Count) int { return strings.Compare(a.Resource, b.Resource) }
	return append([]Count{}, slices.SortedFunc(maps.Values(s.counts), byResource)...)
}

// Total returns the sum of all counts.
func (s *Summary) Total() (t Count) {
	for _, c := range s.counts {
		t.Added, t.Removed, t.Changed = t.Added+c.Added, t.Removed+c.Removed, t.Changed+c.Changed
		t.Recreated, t.Folded = t.Recreated+c.Recreated, t.Folded+c.Folded
	}
	return t
}
