package compare

import (
	"maps"
	"slices"
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
type Summary struct {
	counts map[string]*Count
	total  Count
}

// Add counts an object.
func (s *Summary) Add(o *Object) {
	if s.counts == nil {
		s.counts = map[string]*Count{}
	}
	if s.counts[o.Resource] == nil {
		s.counts[o.Resource] = &Count{Resource: o.Resource}
	}
	for _, c := range []*Count{s.counts[o.Resource], &s.total} {
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
	}
}

// Rows returns the counts, sorted by resource.
func (s *Summary) Rows() []Count {
	rows := []Count{}
	for _, resource := range slices.Sorted(maps.Keys(s.counts)) {
		rows = append(rows, *s.counts[resource])
	}
	return rows
}

// Total returns the sum of all counts.
func (s *Summary) Total() Count { return s.total }
