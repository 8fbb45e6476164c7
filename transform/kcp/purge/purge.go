package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// Purge deletes logical clusters or orphans, and deletes their copies in a cache of the same file
// or gives them to another shard.
type Purge struct {
	Name         string // of a logical cluster; "" only with Orphans, for those of all
	Orphans      bool   // the keys of logical clusters that do not live on the shard, and no living one
	WithChildren bool   // and all that live on the shard and whose owner lies in one of them
	FromShard    string // not of a shard, but of a cache: what it has of Name as this shard wrote it
	ToShard      string // give the copies in a cache to this shard; "": delete them
	AsShard      string // the shard's own name, for its copies in a cache of the same file; "": what it calls itself
	Scrub        bool   // leave nothing of them in the file, of no revision; Name may be gone but for older records
	Prefixes     []string
}

// ErrNoHome is returned where all orphans are to go and no logical cluster can live in the file: in
// an etcd for single resources (--etcd-servers-overrides) every key belongs to a logical cluster of
// another etcd.
var ErrNoHome = errors.New("no logical cluster can live")

// ErrSameShard is returned where copies are given to the shard that wrote them.
var ErrSameShard = errors.New("the copies are of that shard already")

// Errors of a cache where a shard is expected, and of a shard where a cache is expected.
var (
	ErrCacheAlone  = fmt.Errorf("%w, but a cache", clusters.ErrNoShard)
	ErrNoCacheHere = fmt.Errorf("%w is in the file", clusters.ErrNoCache)
)

// Plan stages the moved copies and then the deletions, each in the order of keys: no revision lacks
// a copy. Errors wrap those of package clusters for a file without the shard, the cache or the
// logical cluster, survey.ErrShardUnknown, ErrSameShard, ErrNoHome, archive.ErrIsArchive, or are
// those of reading the file.
func (p *Purge) Plan(ctx context.Context, v *transform.View) error {
	c, err := p.choose(ctx, v)
	if err != nil {
		return err
	}
	return c.plan(ctx)
}

func (c *choice) plan(ctx context.Context) error {
	c.checkChoice()
	before, err := c.Split(ctx, c.view.Reader())
	if err != nil {
		return err
	}
	keys := slices.Sorted(slices.Values(before.Keys))
	for _, key := range keys {
		if err := c.moveCopy(ctx, []byte(key)); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if err := c.view.Delete(ctx, []byte(key), c.why); err != nil {
			return err
		}
	}
	if c.options.Scrub && len(c.Places) > 0 {
		c.view.Scrub(c.Has)
	}
	receipts := &survey.Receipts{}
	for _, t := range c.targets {
		receipts.Clusters = append(receipts.Clusters, c.receipt(t, before))
	}
	c.view.Report().Sections = append(c.view.Report().Sections, receipts)
	c.view.CheckOutput(func(ctx context.Context, out *inspect.Reader) error {
		return c.check(ctx, out, before.Rest.Sum(), receipts)
	})
	c.steps()
	return nil
}

// receipt counts the records of one logical cluster that go.
func (c *choice) receipt(t *target, s *survey.Split) survey.Receipt {
	r := survey.Receipt{Name: t.name}
	if t.living != nil {
		r.Path = t.living.Path
	}
	if c.shard != nil {
		r.Sum = s.Sum(survey.Place{Prefix: c.shard.Prefix, Cluster: t.name})
	}
	for _, copied := range t.copies {
		r.Copies += s.Sum(survey.PlaceOfCopy(copied)).Keys
		r.CopiesMoved += c.arrivals[survey.Place{Prefix: copied.Prefix, Shard: c.options.ToShard, Cluster: copied.Cluster}]
	}
	if r.CopiesMoved > 0 {
		r.ToShard = c.options.ToShard
	}
	return r
}
