package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// Place is where records of one logical cluster lie: below the prefix of a shard, or below that of a cache as a shard wrote them.
type Place struct{ Prefix, Shard, Cluster string }

// PlaceOf is the place of a key.
func PlaceOf(k keys.Key) Place { return Place{k.Prefix, k.Shard, k.Cluster} }

// Clone is the place without the key that its parts may be of.
func (p Place) Clone() Place {
	return Place{strings.Clone(p.Prefix), strings.Clone(p.Shard), strings.Clone(p.Cluster)}
}

// Compare orders places by prefix, logical cluster and shard.
func (p Place) Compare(q Place) int {
	return cmp.Or(strings.Compare(p.Prefix, q.Prefix), strings.Compare(p.Cluster, q.Cluster), strings.Compare(p.Shard, q.Shard))
}

// ErrSplit is returned for a storage of kcp below whose prefix another storage begins that is none of its own: what of a logical
// cluster lies there would be nobody's.
var ErrSplit = errors.New("a part of the storage is taken for another storage")

// CheckStorages is ErrSplit where a storage without definitions of its own, such as one that a person named with --prefix, begins
// below the prefix of a shard or a cache. Whatever takes logical clusters out of a file, or puts them in, asks it first.
func CheckStorages(f *clusters.File) error {
	var whole, below []string
	for _, o := range f.Others {
		below = append(below, o.Prefix)
	}
	for _, s := range f.Shards {
		whole = append(whole, s.Prefix)
		if len(s.System) == 0 {
			below = append(below, s.Prefix)
		}
	}
	for _, c := range f.Caches {
		whole = append(whole, c.Prefix)
	}
	for _, prefix := range whole {
		for _, other := range below {
			if strings.HasPrefix(other, prefix+"/") {
				return fmt.Errorf("%w: %q is below %q; name the prefix of the shard or the cache, and no part of it", ErrSplit, other, prefix)
			}
		}
	}
	return nil
}

// Selection says which keys of a file are those of some logical clusters. It takes keys apart, and looks for none: what a key is of
// does not depend on who asks.
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

// Purged tells whether a key is one that a purge deletes or creates.
func (s *Selection) Purged(key []byte) bool { return s.Has(key) || s.Created[string(key)] }

// Split is the live records of a file in two: those that are selected, and the rest.
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
		s.count(out, rec, leases)
	}
	return out, nil
}

func (s *Selection) count(out *Split, rec *snapshot.Record, leases map[int64]int64) {
	p, selected := s.Of(rec.Key)
	if s.Created[string(rec.Key)] {
		return
	}
	if !selected {
		out.Rest.Add(rec)
		return
	}
	if out.digests[p] == nil {
		out.digests[p] = archive.NewDigest()
	}
	out.digests[p].Add(rec.Key[len(p.Prefix):], rec.Value, leases[rec.Lease])
	out.Keys = append(out.Keys, string(rec.Key))
}

// Sum is that of the records in one place.
func (s *Split) Sum(p Place) archive.Sum {
	if d := s.digests[p]; d != nil {
		return d.Sum()
	}
	return archive.Sum{}
}

// ErrShardUnknown is returned for a file that has a cache with records of the logical cluster, and does not tell which of them are
// those of this shard.
var ErrShardUnknown = errors.New("the file does not say what this shard is called")
