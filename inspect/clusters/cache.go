package clusters

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// cachePass is what a pass keeps of one cache.
type cachePass struct {
	*pass
	cache   *Cache
	copies  map[origin]*Copy
	tallies map[origin]tally
}

type origin struct{ shard, cluster string }

func newCachePass(p *pass, s keys.Storage) *cachePass {
	return &cachePass{pass: p, cache: &Cache{Prefix: s.Prefix}, copies: map[origin]*Copy{}, tallies: map[origin]tally{}}
}

func (c *cachePass) add(key keys.Key, e *inspect.Entry) error {
	if key.Shard == cacheServer {
		c.cache.Own.add(e)
		return note(c.pass, key, e, nil, &c.cache.Problems, &c.cache.Sealed)
	}
	of := origin{key.Shard, key.Cluster}
	copied := c.copies[of]
	if copied == nil {
		copied = &Copy{Shard: key.Shard, Cluster: key.Cluster}
		c.copies[of], c.tallies[of] = copied, tally{}
	}
	copied.add(e)
	copied.Keys = append(copied.Keys, string(e.Key))
	c.tallies[of].add(key, e, c.names)
	return note(c.pass, key, e, c.reads(key), &copied.Problems, &copied.Sealed)
}

// reads returns what reads the value under key; nil for a value that tells nothing.
func (c *cachePass) reads(key keys.Key) reading {
	switch gr := key.Resource; {
	case key.Custom && gr == ExportType():
		return readExport(key, &c.cache.Exports)
	case key.Custom && gr == shards() && key.Cluster == rootCluster:
		return readShard(key, &c.cache.Registered)
	}
	return nil
}

func (c *cachePass) finish() *Cache {
	origins := slices.SortedFunc(maps.Keys(c.copies), func(a, b origin) int {
		return cmp.Or(strings.Compare(a.shard, b.shard), strings.Compare(a.cluster, b.cluster))
	})
	for _, of := range origins {
		copied := c.copies[of]
		copied.Resources = c.tallies[of].resources()
		c.cache.Copies = append(c.cache.Copies, copied)
	}
	slices.SortStableFunc(c.cache.Exports, func(a, b Export) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(c.cache.Registered, compareRegistered)
	return c.cache
}
