package carry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// perhaps qualifies a missing definition where an unreadable one may define the type.
func perhaps(s *survey.Serving, cluster string) string {
	switch {
	case s.Undecryptable[cluster]:
		return ", as far as can be told: definitions of that logical cluster cannot be decrypted"
	case s.Undecryptable[clusters.SystemCRDs]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

func (c *carrier) reportUnreadable() {
	for _, m := range c.serving.Unreadable {
		what := fmt.Sprintf("%s of %s in %q", survey.Counted(m.Records, "record"), m.Resource, m.Cluster)
		switch m.Code {
		case clusters.CodeUndecodable:
			c.note(m.Key, survey.CodeUndecodable, "%s cannot be read, and stored as it is", what)
			continue
		case survey.CodeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.Version)
		case survey.CodeUnserved:
			what += ": the kcp of this shard has no such type" + perhaps(c.serving, m.Cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" + perhaps(c.serving, m.Cluster)
		}
		c.raise(m.Key, codeOf(m.Code), "%s", what)
	}
}

// checkIdentities reports identities of types that the destination does not know: its kcp would
// have another for the same APIExport, and not find the objects.
func (c *carrier) checkIdentities(types map[string][]string) {
	for _, identity := range slices.Sorted(maps.Keys(types)) {
		if identity == "" || c.dest.knows(identity) {
			continue
		}
		slices.Sort(types[identity])
		c.raise("", codeUnknownIdentity, "identity %s, of %s, is that of no APIExport and no APIBinding that the shard or a cache knows",
			identity, strings.Join(slices.Compact(types[identity]), ", "))
	}
}
