package survey

import (
	"cmp"
	"context"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// Place is where records of one logical cluster lie: below the prefix of a shard, or of a cache as
// a shard wrote them.
type Place struct{ Prefix, Shard, Cluster string }

// PlaceOf is the place of a key.
func PlaceOf(k keys.Key) Place { return Place{k.Prefix, k.Shard, k.Cluster} }

// PlaceOfCopy is the place of the records of a copy.
func PlaceOfCopy(c *clusters.Copy) Place { return Place{c.Prefix, c.Shard, c.Cluster} }

// Compare orders places by prefix, logical cluster and shard.
func (p Place) Compare(q Place) int {
	return cmp.Or(strings.Compare(p.Prefix, q.Prefix), strings.Compare(p.Cluster, q.Cluster), strings.Compare(p.Shard, q.Shard))
}

// Selection says which keys of a file belong to some logical clusters, by the keys alone.
type Selection struct {
	Layouts keys.Layouts
	Places  map[Place]bool
	Created map[string]bool // keys that are neither selected nor of the rest: the input does not have them
}

// NewSelection makes a Selection of no key.
func NewSelection(layouts keys.Layouts) *Selection {
	return &Selection{Layouts: layouts, Places: map[Place]bool{}, Created: map[string]bool{}}
}

// Add selects the keys of a place.
func (s *Selection) Add(p Place) { s.Places[p] = true }

// Of returns the place of a key that is selected.
func (s *Selection) Of(key []byte) (p Place, selected bool) {
	k, _, err := s.Layouts.Parse(key)
	if err != nil {
		return Place{}, false
	}
	p = PlaceOf(k)
	return p, s.Places[p]
}

// Has tells whether a key is selected.
func (s *Selection) Has(key []byte) bool {
	_, selected := s.Of(key)
	return selected
}

// Purged tells whether a purge deletes or creates a key.
func (s *Selection) Purged(key []byte) bool { return s.Has(key) || s.Created[string(key)] }

// Split holds the live records of a file in two parts: the selected ones and the rest.
type Split struct {
	Keys    []string // that are selected, in revision order
	digests map[Place]*archive.Digest
	Rest    *archive.Rest
}

// Split reads every live record of a file.
func (s *Selection) Split(ctx context.Context, r *inspect.Reader) (*Split, error) {
	file := r.Snapshot()
	leases, err := file.Leases(ctx)
	if err != nil {
		return nil, err
	}
	out := &Split{digests: map[Place]*archive.Digest{}, Rest: archive.NewRest()}
	for rec, err := range file.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		switch p, selected := s.Of(rec.Key); {
		case s.Created[string(rec.Key)]:
		case !selected:
			out.Rest.Add(rec)
		default:
			if out.digests[p] == nil {
				out.digests[p] = archive.NewDigest()
			}
			out.digests[p].Add(rec.Key[len(p.Prefix):], rec.Value, leases[rec.Lease])
			out.Keys = append(out.Keys, string(rec.Key))
		}
	}
	return out, nil
}

// Past returns the places of which a file has records of any revision, deletions among them.
func (s *Selection) Past(ctx context.Context, r *inspect.Reader) (map[Place]bool, error) {
	all := map[Place]bool{}
	for rec, err := range r.Snapshot().Records(ctx) {
		if err != nil {
			return nil, err
		}
		if k, _, err := s.Layouts.Parse(rec.Key); err == nil && !all[PlaceOf(k)] { // a part of a key would keep the whole key
			all[Place{strings.Clone(k.Prefix), strings.Clone(k.Shard), strings.Clone(k.Cluster)}] = true
		}
	}
	return all, nil
}

// Sum is the sum of the records in one place.
func (s *Split) Sum(p Place) archive.Sum {
	if d := s.digests[p]; d != nil {
		return d.Sum()
	}
	return archive.Sum{}
}
