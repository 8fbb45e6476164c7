package clusters

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// cachePass is the part of a pass for one cache.
type cachePass struct {
	*pass
	cache  *Cache
	copies map[keys.Key]*Copy // by shard and logical cluster
}

func (c *cachePass) add(key keys.Key, e *inspect.Entry) error {
	if key.Shard == cacheServer {
		return c.cache.Own.add(c.pass, key, e, nil)
	}
	of := keys.Key{Shard: key.Shard, Cluster: key.Cluster}
	if c.copies[of] == nil {
		c.copies[of] = &Copy{Prefix: c.cache.Prefix, Shard: key.Shard, Cluster: key.Cluster}
	}
	copied := c.copies[of]
	copied.Keys = append(copied.Keys, string(e.Key))
	if key.Custom && key.Resource == ExportType {
		copied.Exports = append(copied.Exports, strings.Clone(key.Name))
	}
	return copied.Records.add(c.pass, key, e, c.reads(key))
}

func (c *cachePass) reads(key keys.Key) reading {
	switch gr := key.Resource; {
	case key.Custom && gr == ExportType:
		return readExport(key, &c.cache.Exports)
	case key.Custom && gr == shardType && key.Cluster == rootCluster:
		return readShard(key, &c.cache.Registered)
	}
	return nil
}

func (c *cachePass) finish() *Cache {
	c.cache.Own.finish()
	c.cache.Copies = slices.SortedFunc(maps.Values(c.copies), func(a, b *Copy) int {
		return cmp.Or(strings.Compare(a.Shard, b.Shard), strings.Compare(a.Cluster, b.Cluster))
	})
	for _, copied := range c.cache.Copies {
		copied.finish()
	}
	slices.SortStableFunc(c.cache.Exports, func(a, b Export) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(c.cache.Registered, compareRegistered)
	return c.cache
}
