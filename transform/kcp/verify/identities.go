package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// checkIdentities finds identities that the logical clusters rely on and that nothing else on the
// destination has.
func (c *checker) checkIdentities(context.Context) error {
	needs := map[string]string{} // a type, by identity
	for _, cluster := range c.archive.shard.Clusters {
		for _, r := range cluster.Resources {
			needs[r.Identity] = r.Resource.String()
		}
		for _, bound := range cluster.Bound() {
			if !bound.Virtual {
				needs[bound.Identity] = bound.Resource.String()
			}
		}
	}
	if hasUnread(c.archive.shard) { // the manifest knows them, and not which of them have no records
		for _, id := range c.archive.manifest.Identities {
			if !id.Own && len(id.Resources) > 0 {
				needs[id.Hash] = id.Resources[0]
			}
		}
	}
	delete(needs, "")
	for _, identity := range slices.Sorted(maps.Keys(needs)) {
		switch {
		case c.knows(identity):
		case hasUnread(c.to):
			c.unchecked(QuestionLost, c.destination.file, "",
				fmt.Sprintf("what could be read does not have the identity %s, which %s needs, and not all could", identity, needs[identity]))
		default:
			c.found(codeIdentityUnknown, c.destination.file, "", "nothing that was there before has the identity %s, which %s needs", identity, needs[identity])
		}
	}
	return nil
}

// hasUnread tells whether a shard has unreadable records of the kinds that describe logical
// clusters.
func hasUnread(s *clusters.Shard) bool {
	return slices.ContainsFunc(s.Clusters, func(c *clusters.Cluster) bool {
		return slices.ContainsFunc(c.Problems, func(p finding.Finding) bool { return p.Code != clusters.CodeKeyMismatch })
	})
}

// knows tells whether a shard in the destination's file, or a cache, has an identity. Bindings of
// moved logical clusters do not count, their APIExports do.
func (c *checker) knows(identity string) bool {
	for _, s := range c.destination.Shards {
		for _, cluster := range s.Clusters {
			if clusters.Exported(cluster.Exports, identity) || !c.archive.moved[cluster.Name] && cluster.Binds(identity) {
				return true
			}
		}
	}
	exports := func(cache *clusters.Cache) bool { return clusters.Exported(cache.Exports, identity) }
	return slices.ContainsFunc(c.outputs, func(out *output) bool { return slices.ContainsFunc(out.Caches, exports) })
}
