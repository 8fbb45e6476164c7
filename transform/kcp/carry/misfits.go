package carry

import (
	"fmt"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// perhaps is said where a definition that no key opens may be the one that is missed.
func perhaps(s *survey.Serving, cluster string) string {
	switch {
	case s.Closed[cluster]:
		return ", as far as can be told: definitions of that logical cluster are encrypted and stay closed"
	case s.Closed[clusters.SystemCRDs]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

// reportMisfits refuses what was found.
func reportMisfits(v *transform.View, s *survey.Serving) {
	for _, m := range s.Misfits {
		what := fmt.Sprintf("%s of %s in %q", survey.Counted(m.Records, "record"), m.Resource, m.Cluster)
		switch m.Code {
		case clusters.CodeUndecodable:
			v.Warn(m.Key, m.Code, what+" cannot be read, and stored as it is")
			continue
		case survey.CodeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.Version)
		case survey.CodeUnserved:
			what += ": the kcp of this shard has no such type" + perhaps(s, m.Cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" + perhaps(s, m.Cluster)
		}
		v.GoOn(m.Key, m.Code, what)
	}
}
