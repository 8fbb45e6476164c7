package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	var caches []*clusters.Cache
	for _, out := range c.outputs {
		caches = append(caches, out.Caches...)
	}
	for _, identity := range slices.Sorted(maps.Keys(needs)) {
		switch {
		case clusters.Knows(c.destination.Shards, caches, c.archive.moved, identity): // their APIExports count, their APIBindings do not
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
	return slices.ContainsFunc(s.Clusters, func(c *clusters.Cluster) bool { return len(c.Unread()) > 0 })
}
