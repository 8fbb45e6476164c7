package logicalcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/archive"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// place is where records of one logical cluster lie: below the prefix of a shard, or below that of a cache as a shard wrote them.
type place struct{ prefix, shard, cluster string }

// clone is the place without the key that its parts may be of.
func (p place) clone() place {
	return place{strings.Clone(p.prefix), strings.Clone(p.shard), strings.Clone(p.cluster)}
}

func (p place) compare(q place) int {
	return cmp.Or(strings.Compare(p.prefix, q.prefix), strings.Compare(p.cluster, q.cluster), strings.Compare(p.shard, q.shard))
}

// ErrSplit is returned for a storage of kcp below whose prefix another storage begins that is none of its own: what of a logical
// cluster lies there would be nobody's.
var ErrSplit = errors.New("a part of the storage is taken for another storage")

// checkStorages is ErrSplit where a storage without definitions of its own, such as one that a person named with --prefix, begins
// below the prefix of a shard or a cache. Whatever takes logical clusters out of a file, or puts them in, asks it first.
func checkStorages(f *clusters.File) error {
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

// selection says which keys of a file are those of some logical clusters. It takes keys apart, and looks for none: what a key is of
// does not depend on who asks.
type selection struct {
	layouts keys.Layouts
	places  map[place]bool
	created map[string]bool // keys that are neither selected nor of the rest: the input does not have them
}

func newSelection(layouts keys.Layouts) *selection {
	return &selection{layouts: layouts, places: map[place]bool{}, created: map[string]bool{}}
}

func (s *selection) add(p place) { s.places[p] = true }

// of returns the place of a key that is selected.
func (s *selection) of(key []byte) (p place, selected bool) {
	k, _, err := s.layouts.Parse(key)
	if err != nil {
		return place{}, false
	}
	p = place{k.Prefix, k.Shard, k.Cluster}
	return p, s.places[p]
}

// has tells whether a key is selected.
func (s *selection) has(key []byte) bool {
	_, selected := s.of(key)
	return selected
}

// purged tells whether a key is one that a purge deletes or creates.
func (s *selection) purged(key []byte) bool { return s.has(key) || s.created[string(key)] }

// split is the live records of a file in two: those that are selected, and the rest.
type split struct {
	keys    []string // that are selected, in revision order
	digests map[place]*archive.Digest
	rest    *archive.Rest
}

// split reads every live record of a file.
func (s *selection) split(ctx context.Context, r *inspect.Reader) (*split, error) {
	file := r.Snapshot()
	leases, err := file.Leases(ctx)
	if err != nil {
		return nil, err
	}
	out := &split{digests: map[place]*archive.Digest{}, rest: archive.NewRest()}
	for rec, err := range file.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		s.count(out, rec, leases)
	}
	return out, nil
}

func (s *selection) count(out *split, rec *snapshot.Record, leases map[int64]int64) {
	p, selected := s.of(rec.Key)
	if s.created[string(rec.Key)] {
		return
	}
	if !selected {
		out.rest.Add(rec)
		return
	}
	if out.digests[p] == nil {
		out.digests[p] = archive.NewDigest()
	}
	out.digests[p].Add(rec.Key[len(p.prefix):], rec.Value, leases[rec.Lease])
	out.keys = append(out.keys, string(rec.Key))
}

// receipt is that of the records in one place.
func (s *split) receipt(p place) transform.Receipt {
	d := s.digests[p]
	if d == nil {
		return transform.Receipt{}
	}
	return receipt(d.Sum())
}

func receipt(s archive.Sum) transform.Receipt {
	return transform.Receipt{Keys: s.Keys, Bytes: s.Bytes, SHA256: s.SHA256}
}
