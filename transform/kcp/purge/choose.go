package purge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// choice is what a purge is about.
type choice struct {
	*survey.Selection
	*survey.Index
	options   Options
	file      *clusters.File
	shard     *clusters.Shard // nil where only a cache is purged
	shardName string          // that of shard, or the one whose copies are purged; "" where nobody knows
	targets   []*target       // parents before their children
	byName    map[string]*target
	why       string // of each deletion
	moved     []movedCopy
	arrivals  map[survey.Place]int // how many of them, by the place that they get
	past      recorded             // nil without Scrub
}

// target is one logical cluster that goes.
type target struct {
	name   string
	living *clusters.Cluster  // nil for orphans, in a cache, and for one that is gone but for older records
	orphan *clusters.Orphan   // nil for all others
	copies []survey.CacheCopy // that go with it
}

func (p *Purge) choose(file *clusters.File, s *survey.Selection, before recorded) (*choice, error) {
	c := &choice{Selection: s, Index: survey.NewIndex(file), options: p.options, file: file, byName: map[string]*target{}, past: before, arrivals: map[survey.Place]int{}}
	if err := survey.CheckStorages(file); err != nil {
		return nil, err
	}
	if p.options.FromShard != "" {
		return c, c.chooseCopies(p.options)
	}
	if err := c.chooseShard(); err != nil {
		return nil, err
	}
	var err error
	if p.options.Orphans {
		err = c.chooseOrphans(p.options.Name)
	} else {
		err = c.chooseLiving(p.options.Name, p.options.WithChildren)
	}
	if errors.Is(err, clusters.ErrNoCluster) {
		err = c.chooseGone(p.options.Name, err)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range c.targets {
		c.Add(survey.Place{Prefix: c.shard.Prefix, Cluster: t.name})
		if err := c.addCopies(t); err != nil {
			return nil, err
		}
	}
	return c, c.addPastCopies()
}

// chooseShard finds the shard and what it is called.
func (c *choice) chooseShard() (err error) {
	if c.shard, err = c.file.Shard(c.options.Prefixes); errors.Is(err, clusters.ErrNoShard) {
		if cache, _ := c.file.Cache(c.options.Prefixes); cache != nil {
			err = fmt.Errorf("%w below %q", ErrCacheAlone, cache.Prefix)
		}
	}
	if err != nil {
		return err
	}
	c.shardName = cmp.Or(c.options.AsShard, c.shard.Name)
	return c.checkToShard()
}

// take makes a logical cluster go.
func (c *choice) take(t *target) {
	c.targets = append(c.targets, t)
	c.byName[t.name] = t
}

// goes tells whether a logical cluster is chosen.
func (c *choice) goes(name string) bool { return c.byName[name] != nil }

// chooseCopies chooses what a cache has of a logical cluster as one shard wrote it.
func (c *choice) chooseCopies(o Options) error {
	cache, err := c.file.Cache(o.Prefixes)
	if errors.Is(err, clusters.ErrNoCache) {
		if shard, _ := c.file.Shard(o.Prefixes); shard != nil {
			err = fmt.Errorf("%w, but a shard below %q", ErrNoCacheHere, shard.Prefix)
		}
	}
	if err != nil {
		return err
	}
	c.shardName, c.why, c.Caches = o.FromShard, "a copy of a logical cluster that is purged", map[string]bool{cache.Prefix: true}
	if err := c.checkToShard(); err != nil {
		return err
	}
	at := survey.Place{Prefix: cache.Prefix, Shard: o.FromShard, Cluster: o.Name}
	var writers []string
	for _, copied := range c.Copies[o.Name] {
		if copied.Prefix != cache.Prefix {
			continue
		}
		if copied.Shard == o.FromShard {
			c.take(&target{name: o.Name, copies: []survey.CacheCopy{copied}})
			c.Add(at)
			return nil
		}
		writers = append(writers, fmt.Sprintf("%q", copied.Shard))
	}
	switch {
	case c.past[at]:
		c.take(&target{name: o.Name})
		c.Add(at)
		return nil
	case c.movedBefore(cache):
		c.take(&target{name: o.Name})
		return nil
	}
	if len(writers) > 0 {
		return fmt.Errorf("%w: the cache has nothing of %q from shard %q; it has copies from %s%s",
			clusters.ErrNoCluster, o.Name, o.FromShard, strings.Join(writers, ", "), c.unknownShard("; ", o.FromShard))
	}
	return fmt.Errorf("%w: the cache has nothing of %q, from whatever shard%s", clusters.ErrNoCluster, o.Name, c.unknownShard("; ", o.FromShard))
}

// chooseOrphans chooses those of one logical cluster, or all: then none are none too many. What lives somewhere, an etcd of some
// resources alone does not tell, so that all would be everything.
func (c *choice) chooseOrphans(name string) error {
	c.why = "it is of a logical cluster that does not live here"
	if name == "" && len(c.shard.Orphans) > 0 {
		switch {
		case len(c.shard.System) == 0:
			return fmt.Errorf("%w below %q: kcp's own definitions are not there; name the logical cluster whose keys are to go", ErrNoHome, c.shard.Prefix)
		case c.shard.Partial:
			return fmt.Errorf("%w below %q: the LogicalCluster of %s, which each shard has, is not there; name the logical cluster whose keys are to go",
				ErrNoHome, c.shard.Prefix, clusters.SystemShard)
		}
	}
	var names []string
	for _, o := range c.shard.Orphans {
		if name == "" || o.Name == name {
			c.take(&target{name: o.Name, orphan: o})
		}
		names = append(names, fmt.Sprintf("%q", o.Name))
	}
	switch {
	case name == "" || len(c.targets) > 0:
		return nil
	case c.shard.Cluster(name) != nil:
		return fmt.Errorf("%w: %q lives on this shard: its keys are no orphans", clusters.ErrNoCluster, name)
	case len(names) == 0:
		return fmt.Errorf("%w: this shard has no orphans, of %q or any other", clusters.ErrNoCluster, name)
	}
	return fmt.Errorf("%w: this shard has no orphans of %q; it has some of %s", clusters.ErrNoCluster, name, strings.Join(names, ", "))
}

// chooseLiving chooses one logical cluster, and where it is asked for all whose owner lies in one that is chosen.
func (c *choice) chooseLiving(name string, withChildren bool) error {
	c.why = "it is of a logical cluster that is purged"
	root, err := c.shard.Find(name)
	if err != nil {
		return err
	}
	c.take(&target{name: root.Name, living: root})
	for i := 0; withChildren && i < len(c.targets); i++ {
		for _, child := range c.shard.Children(c.targets[i].name) {
			if !c.goes(child.Name) {
				c.take(&target{name: child.Name, living: child})
			}
		}
	}
	return nil
}

// chooseGone chooses a logical cluster of which nothing is live and the file has older records; otherwise none is why not.
func (c *choice) chooseGone(name string, none error) error {
	if c.shard.Cluster(name) != nil || slices.ContainsFunc(c.shard.Orphans, func(o *clusters.Orphan) bool { return o.Name == name }) {
		return none
	}
	had := c.past[survey.Place{Prefix: c.shard.Prefix, Cluster: name}]
	for prefix := range c.Caches {
		had = had || c.past[survey.Place{Prefix: prefix, Shard: c.shardName, Cluster: name}]
	}
	if !had {
		return none
	}
	c.take(&target{name: name})
	return nil
}

// addCopies chooses what the caches of the file have of a logical cluster as this shard wrote it.
func (c *choice) addCopies(t *target) error {
	for _, copied := range c.Copies[t.name] {
		switch {
		case c.shardName == "":
			return c.shardUnknown(copied.Place())
		case copied.Shard == c.shardName:
			t.copies = append(t.copies, copied)
			c.Add(copied.Place())
		}
	}
	return nil
}

// addPastCopies chooses what the caches of the file had of the logical clusters as this shard wrote it, whether a copy is live or not.
func (c *choice) addPastCopies() error {
	for _, at := range slices.SortedFunc(maps.Keys(c.past), survey.Place.Compare) {
		switch {
		case !c.Caches[at.Prefix] || !c.goes(at.Cluster):
		case c.shardName == "":
			return c.shardUnknown(at)
		case at.Shard == c.shardName:
			c.Add(at)
		}
	}
	return nil
}

func (c *choice) shardUnknown(at survey.Place) error {
	return fmt.Errorf("%w: the cache below %q has records of %q, from shard %q among others; name this one with --as-shard",
		survey.ErrShardUnknown, at.Prefix, at.Cluster, at.Shard)
}
