package carry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// perhaps is said where a definition that no key opens may be the one that is missed.
func perhaps(s *survey.Serving, cluster string) string {
	switch {
	case s.Closed[cluster]:
		return ", as far as can be told: definitions of that logical cluster cannot be decrypted"
	case s.Closed[clusters.SystemCRDs]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

// reportUnreadable refuses what was found.
func (c *carrier) reportUnreadable() {
	for _, m := range c.serving.Unreadable {
		what := fmt.Sprintf("%s of %s in %q", survey.Counted(m.Records, "record"), m.Resource, m.Cluster)
		switch m.Code {
		case clusters.CodeUndecodable:
			c.view.Raise(m.Key, codeOf(m.Code).Because("%s cannot be read, and stored as it is", what).Decided(finding.Noted))
			continue
		case survey.CodeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.Version)
		case survey.CodeUnserved:
			what += ": the kcp of this shard has no such type" + perhaps(c.serving, m.Cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" + perhaps(c.serving, m.Cluster)
		}
		c.view.Raise(m.Key, codeOf(m.Code).Because("%s", what))
	}
}

// checkIdentities reports the identities, of types, that nothing of the destination vouches for: its kcp would have another for the same
// APIExport, and not find the objects.
func (c *carrier) checkIdentities(types map[string][]string) {
	for _, identity := range slices.Sorted(maps.Keys(types)) {
		if identity == "" || c.dest.knows(identity) {
			continue
		}
		slices.Sort(types[identity])
		c.view.Raise("", codeUnknownIdentity.Because("identity %s, of %s, is that of no APIExport and no APIBinding that the shard or a cache knows",
			identity, strings.Join(slices.Compact(types[identity]), ", ")))
	}
}
