package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// PurgeOptions say what a Purge takes out of a file.
type Options struct {
	Name         string // of a logical cluster; "" only with Orphans, for those of all
	Orphans      bool   // the keys of logical clusters that do not live on the shard, and no living one
	WithChildren bool   // and all that live on the shard and whose owner lies in one of them
	FromShard    string // not of a shard, but of a cache: what it has of Name as this shard wrote it
	ToShard      string // give the copies in a cache to this shard; "": delete them
	AsShard      string // the shard's own name, for its copies in a cache of the same file; "": what it calls itself
	Scrub        bool   // leave nothing of them in the file, of no revision; Name may be gone but for older records
	Prefixes     []string
}

// ErrNoHome is returned where all orphans are to go and nothing tells what lives: in an etcd of some resources alone, such as one that
// the API server's --etcd-servers-overrides names for Events, every key is of a logical cluster that lives in another etcd.
var ErrNoHome = errors.New("no logical cluster can live")

// ErrSameShard is returned where copies are to be given to the shard that wrote them.
var ErrSameShard = errors.New("the copies are of that shard already")

// What there is of the file that a purge takes for another: a cache for a shard, or a shard alone for a cache. They wrap
// clusters.ErrNoShard and clusters.ErrNoCache.
var (
	ErrCacheAlone  = fmt.Errorf("%w, but a cache", clusters.ErrNoShard)
	ErrNoCacheHere = fmt.Errorf("%w is in the file", clusters.ErrNoCache)
)

// Purge deletes logical clusters, or orphans of them, and deletes what a cache in the same file has of them, or gives it to another
// shard.
type Purge struct {
	options  Options
	chosen   *choice // by Plan
	before   *survey.Split
	receipts survey.Receipts // a section of the report
}

var (
	_ transform.Transform = (*Purge)(nil)
	_ transform.Checker   = (*Purge)(nil)
)

// NewPurge makes a Purge.
func New(o Options) *Purge { return &Purge{options: o} }

// Plan stages the copies that another shard gets and then the deletions, each in the order of keys: at no revision is a copy missing.
// Errors wrap those of package clusters for a file without the shard, the cache or
// the logical cluster, ErrShardUnknown, ErrSameShard, ErrNoHome, ErrSplit, ErrArchive, or are those of reading the file.
func (p *Purge) Plan(ctx context.Context, v *transform.View) error {
	if err := archive.Refuse(ctx, v.Reader().Snapshot()); err != nil {
		return err
	}
	file, err := clusters.ReadChecked(ctx, v.Reader())
	if err != nil {
		return err
	}
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return err
	}
	chosen, before := survey.NewSelection(layouts), recorded(nil)
	if p.options.Scrub {
		if before, err = readRecorded(ctx, layouts, v.Reader()); err != nil {
			return err
		}
	}
	if p.chosen, err = p.choose(file, chosen, before); err != nil {
		return err
	}
	p.chosen.judge(v)
	if p.before, err = p.chosen.Split(ctx, v.Reader()); err != nil {
		return err
	}
	keys := slices.Sorted(slices.Values(p.before.Keys))
	if err := p.chosen.moveCopies(ctx, v, keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := v.Delete(ctx, []byte(key), p.chosen.why); err != nil {
			return err
		}
	}
	if p.options.Scrub && len(p.chosen.Places) > 0 {
		v.Scrub(p.chosen.Has)
	}
	for _, t := range p.chosen.targets {
		p.receipts.Clusters = append(p.receipts.Clusters, p.chosen.receipt(t, p.before))
	}
	v.Report().Sections = append(v.Report().Sections, &p.receipts)
	p.steps(v.Report())
	return nil
}

// receipt is what goes of one logical cluster.
func (c *choice) receipt(t *target, s *survey.Split) survey.Receipt {
	r := survey.Receipt{Name: t.name}
	if t.living != nil {
		r.Path = t.living.Path
	}
	if c.shard != nil {
		r.Sum = s.Sum(survey.Place{Prefix: c.shard.Prefix, Cluster: t.name})
	}
	for _, copied := range t.copies {
		r.Copies += s.Sum(copied.Place()).Keys
		r.CopiesMoved += c.arrivals[survey.Place{Prefix: copied.Prefix, Shard: c.options.ToShard, Cluster: copied.Cluster}]
	}
	if r.CopiesMoved > 0 {
		r.ToShard = c.options.ToShard
	}
	return r
}
