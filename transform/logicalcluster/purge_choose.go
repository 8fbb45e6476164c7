package logicalcluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// choice is what a purge is about.
type choice struct {
	*selection
	file      *clusters.File
	shard     *clusters.Shard // nil where only a cache is purged
	shardName string          // that of shard, or the one whose copies are purged; "" where nobody knows
	targets   []*target       // parents before their children
	why       string          // of each deletion
	// ever tells whether the file has a record, of whatever revision, in a place.
	ever func(place) (bool, error)
}

// target is one logical cluster that goes.
type target struct {
	name   string
	living *clusters.Cluster // nil for orphans, in a cache, and for one that is gone but for older records
	orphan *clusters.Orphan  // nil for all others
	copies []cacheCopy       // that go with it
}

type cacheCopy struct {
	prefix string // of the cache
	*clusters.Copy
}

func (p *Purge) choose(file *clusters.File, s *selection, ever func(place) (bool, error)) (*choice, error) {
	c := &choice{selection: s, file: file, ever: ever}
	if p.options.FromShard != "" {
		return c, c.chooseCopies(p.options)
	}
	var err error
	if c.shard, err = file.Shard(p.options.Prefixes); err != nil {
		return nil, err
	}
	c.shardName = c.shard.Name
	if p.options.AsShard != "" {
		c.shardName = p.options.AsShard
	}
	if p.options.Orphans {
		err = c.chooseOrphans(p.options.Name)
	} else {
		err = c.chooseLiving(p.options.Name, p.options.WithChildren)
	}
	if errors.Is(err, clusters.ErrNoCluster) && p.options.Scrub {
		err = c.chooseGone(p.options.Name, err)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range c.targets {
		c.add(place{prefix: c.shard.Prefix, cluster: t.name})
		if err := c.addCopies(t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// chooseCopies chooses what a cache has of a logical cluster as one shard wrote it.
func (c *choice) chooseCopies(o PurgeOptions) error {
	cache, err := c.file.Cache(o.Prefixes)
	if err != nil {
		return err
	}
	c.shardName, c.why = o.FromShard, "a copy of a logical cluster that is purged"
	var writers []string
	for _, copied := range cache.Copies {
		if copied.Cluster != o.Name {
			continue
		}
		if copied.Shard == o.FromShard {
			c.targets = []*target{{name: o.Name, copies: []cacheCopy{{cache.Prefix, copied}}}}
			c.add(place{cache.Prefix, copied.Shard, copied.Cluster})
			return nil
		}
		writers = append(writers, fmt.Sprintf("%q", copied.Shard))
	}
	if o.Scrub {
		at := place{cache.Prefix, o.FromShard, o.Name}
		if had, err := c.ever(at); had || err != nil {
			c.targets = []*target{{name: o.Name}}
			c.add(at)
			return err
		}
	}
	if len(writers) > 0 {
		return fmt.Errorf("%w: the cache has nothing of %q from shard %q; it has copies from %s",
			clusters.ErrNoCluster, o.Name, o.FromShard, strings.Join(writers, ", "))
	}
	return fmt.Errorf("%w: the cache has nothing of %q, from whatever shard", clusters.ErrNoCluster, o.Name)
}

// chooseOrphans chooses those of one logical cluster, or all: then none are none too many. What lives somewhere, an etcd of some
// resources alone does not tell, so that all would be everything.
func (c *choice) chooseOrphans(name string) error {
	c.why = "it is of a logical cluster that does not live here"
	if name == "" && len(c.shard.System) == 0 && len(c.shard.Orphans) > 0 {
		return fmt.Errorf("%w below %q: kcp's own definitions are not there; name the logical cluster whose keys are to go", ErrNoHome, c.shard.Prefix)
	}
	var names []string
	for _, o := range c.shard.Orphans {
		if name == "" || o.Name == name {
			c.targets = append(c.targets, &target{name: o.Name, orphan: o})
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
	c.targets = []*target{{name: root.Name, living: root}}
	for i := 0; withChildren && i < len(c.targets); i++ {
		for _, child := range c.shard.Children(c.targets[i].name) {
			if !c.goes(child.Name) {
				c.targets = append(c.targets, &target{name: child.Name, living: child})
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
	had, err := c.ever(place{prefix: c.shard.Prefix, cluster: name})
	switch {
	case err != nil:
		return err
	case !had:
		return none
	}
	c.targets = []*target{{name: name}}
	return nil
}

// goes tells whether a logical cluster is chosen.
func (c *choice) goes(name string) bool {
	return slices.ContainsFunc(c.targets, func(t *target) bool { return t.name == name })
}

// addCopies chooses what the caches of the file have of a logical cluster as this shard wrote it.
func (c *choice) addCopies(t *target) error {
	for _, cache := range c.file.Caches {
		for _, copied := range cache.Copies {
			switch {
			case copied.Cluster != t.name:
			case c.shardName == "":
				return fmt.Errorf("%w: the cache below %q has copies of %q, from shard %q among others; name this one with --as-shard",
					ErrShardUnknown, cache.Prefix, t.name, copied.Shard)
			case copied.Shard == c.shardName:
				t.copies = append(t.copies, cacheCopy{cache.Prefix, copied})
				c.add(place{cache.Prefix, copied.Shard, copied.Cluster})
			}
		}
	}
	return nil
}
