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
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// check proves that the output has no purged key, and every other live record as in the input.
// Errors wrap snapshot.ErrVerify.
func (c *choice) check(ctx context.Context, out *inspect.Reader, was archive.Sum, receipts *survey.Receipts) error {
	for _, m := range c.moved {
		c.Created[m.to] = true
	}
	after, err := c.Split(ctx, out)
	if err != nil {
		return err
	}
	if n := len(after.Keys); n > 0 {
		return fmt.Errorf("%w: of what was purged %s left, such as %q", snapshot.ErrVerify, survey.Counted(n, "key"), after.Keys[0])
	}
	if is := after.Rest.Sum(); is != was {
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, is.Keys, is.SHA256, was.Keys, was.SHA256)
	}
	receipts.Rest = &was
	if err := c.checkMoved(ctx, out); err != nil {
		return err
	}
	if err := c.checkClusters(ctx, out); err != nil || !c.options.Scrub {
		return err
	}
	return c.checkScrubbed(ctx, out)
}

func (c *choice) checkClusters(ctx context.Context, out *inspect.Reader) error {
	file, err := clusters.Read(ctx, out)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(file.Storages, c.file.Storages, func(a, b keys.Storage) bool { return a.Prefix == b.Prefix && a.Flavour == b.Flavour }) {
		return nil // what shows that a shard is below a prefix is gone with the rest; check has seen each key
	}
	want := amounts(c.file)
	for at := range c.Places {
		delete(want, at)
	}
	got := amounts(file)
	for at, came := range c.arrivals {
		if is, was := got[at].Keys, want[at].Keys; is != was+came {
			return fmt.Errorf("%w: the cache has %d copies of %q from shard %q, and not %d and %d more", snapshot.ErrVerify, is, at.Cluster, at.Shard, was,
				came)
		}
		delete(got, at)
		delete(want, at)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("%w: the logical clusters of the output, %d of them, are not those of the input without what was purged, %d", snapshot.ErrVerify,
			len(got), len(want))
	}
	return nil
}

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
	for _, c := range f.Copies() {
		out[survey.PlaceOfCopy(c)] = c.Amount
	}
	return out
}

// checkScrubbed looks for purged records of any revision, by the names of the logical clusters.
func (c *choice) checkScrubbed(ctx context.Context, out *inspect.Reader) error {
	for rec, err := range out.Snapshot().Records(ctx) {
		if err != nil {
			return err
		}
		k, _, err := c.Layouts.Parse(rec.Key)
		if err != nil || !c.goes(k.Cluster) {
			continue
		}
		ofShard := c.shard != nil && k.Prefix == c.shard.Prefix
		if ofShard || c.Caches[k.Prefix] && k.Shard == c.shardName {
			return fmt.Errorf("%w: revision %s of %q is left", snapshot.ErrVerify, rec.Revision, rec.Key)
		}
	}
	return nil
}
