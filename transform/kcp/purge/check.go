package purge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// Check proves that the output has no key of what was purged, and every other live record as the input has it. The error wraps
// snapshot.ErrVerify.
func (p *Purge) Check(ctx context.Context, v *transform.View, out *inspect.Reader) error {
	return out.Snapshot().Guard(func() error { return p.check(ctx, v, out) })
}

func (p *Purge) check(ctx context.Context, v *transform.View, out *inspect.Reader) error {
	for _, m := range p.chosen.moved {
		p.chosen.Created[m.to] = true
	}
	after, err := p.chosen.Split(ctx, out)
	if err != nil {
		return err
	}
	if n := len(after.Keys); n > 0 {
		return fmt.Errorf("%w: of what was purged %s left, such as %q", snapshot.ErrVerify, survey.Counted(n, "key"), after.Keys[0])
	}
	is, was := after.Rest.Sum(), p.before.Rest.Sum()
	if is != was {
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s", snapshot.ErrVerify, is.Keys, is.SHA256, was.Keys, was.SHA256)
	}
	p.receipts.Rest = &was
	if err := p.checkMoved(ctx, v, out); err != nil {
		return err
	}
	if err := p.checkClusters(ctx, out); err != nil {
		return err
	}
	if p.options.Scrub {
		return p.checkScrubbed(ctx, out)
	}
	return nil
}

// checkClusters reads the logical clusters of the output and compares them with those of the input.
func (p *Purge) checkClusters(ctx context.Context, out *inspect.Reader) error {
	file, err := clusters.Read(ctx, out)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(file.Storages, p.chosen.file.Storages, func(a, b keys.Storage) bool { return a.Prefix == b.Prefix && a.Flavour == b.Flavour }) {
		return nil // what shows that a shard is below a prefix is gone with the rest; check has seen each key
	}
	want := amounts(p.chosen.file)
	for at := range p.chosen.Places {
		delete(want, at)
	}
	got := amounts(file)
	for at, came := range p.chosen.arrivals {
		if is, was := got[at].Keys, want[at].Keys; is != was+came {
			return fmt.Errorf("%w: the cache has %d copies of %q from shard %q, and not %d and %d more", snapshot.ErrVerify, is, at.Cluster, at.Shard, was, came)
		}
		delete(got, at)
		delete(want, at)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("%w: the logical clusters of the output, %d of them, are not those of the input without what was purged, %d", snapshot.ErrVerify, len(got), len(want))
	}
	return nil
}

// amounts is what a file has in each place.
func amounts(f *clusters.File) map[survey.Place]clusters.Amount {
	out := map[survey.Place]clusters.Amount{}
	for _, s := range f.Shards {
		for _, c := range s.Clusters {
			out[survey.Place{Prefix: s.Prefix, Cluster: c.Name}] = c.Amount
		}
		for _, o := range s.Orphans {
			out[survey.Place{Prefix: s.Prefix, Cluster: o.Name}] = o.Amount
		}
	}
	for _, cache := range f.Caches {
		for _, c := range cache.Copies {
			out[survey.Place{Prefix: cache.Prefix, Shard: c.Shard, Cluster: c.Cluster}] = c.Amount
		}
	}
	return out
}

// checkScrubbed looks for a record of any revision. It goes by what was asked for, not by the places that were found for it.
func (p *Purge) checkScrubbed(ctx context.Context, out *inspect.Reader) error {
	for rec, err := range out.Snapshot().Records(ctx) {
		if err != nil {
			return err
		}
		k, _, err := p.chosen.Layouts.Parse(rec.Key)
		if err != nil || !p.chosen.goes(k.Cluster) {
			continue
		}
		ofShard := p.chosen.shard != nil && k.Prefix == p.chosen.shard.Prefix
		if ofShard || p.chosen.Caches[k.Prefix] && k.Shard == p.chosen.shardName {
			return fmt.Errorf("%w: revision %s of %q is left", snapshot.ErrVerify, rec.Revision, rec.Key)
		}
	}
	return nil
}
