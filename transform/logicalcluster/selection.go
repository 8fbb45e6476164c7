package logicalcluster

import (
	"context"

	"github.com/etcdshift/etcdshift/archive"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// place is where records of one logical cluster lie: below the prefix of a shard, or below that of a cache as a shard wrote them.
type place struct{ prefix, shard, cluster string }

// selection says which keys of a file are those of some logical clusters. It takes keys apart, and looks for none: what a key is of
// does not depend on who asks.
type selection struct {
	layouts keys.Layouts
	places  map[place]bool
}

func newSelection(layouts keys.Layouts) *selection { return &selection{layouts, map[place]bool{}} }

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

// ever tells whether a file has a record in a place, a deletion among them, whether that is selected or not.
func (s *selection) ever(ctx context.Context, r *inspect.Reader, at place) (bool, error) {
	for rec, err := range r.Snapshot().Records(ctx) {
		if err != nil {
			return false, err
		}
		if p, _ := s.of(rec.Key); p == at {
			return true, nil
		}
	}
	return false, nil
}

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
