package verify

import (
	"context"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// judgeServing notes the objects that kcp does not serve on the destination, at the version at which they are stored: an import says
// so, and can be told to bring them all the same. Definitions that are not there are findings.
func (j *judge) judgeServing(ctx context.Context) error {
	s := survey.NewServing(j.to)
	for _, c := range j.archiveShard.Clusters {
		s.Bind(c)
	}
	sorted := slices.Sorted(maps.Keys(j.archived))
	for _, define := range []bool{true, false} {
		for _, key := range sorted {
			was := j.archived[key]
			if was.definition || define != (was.place.Resource == clusters.DefinitionType()) {
				continue
			}
			if versions, code := s.Versions(was.place); !define && versions == nil && code == "" {
				continue // no Secret is opened for it
			}
			entry := *was.entry // what is opened is not kept
			if err := j.Archive.Open(ctx, &entry); err != nil {
				return err
			}
			switch {
			case entry.Sealed != nil:
			case define:
				s.Define(was.place, entry.Value)
			default:
				s.Judge(was.place, []byte(j.to.Prefix+key), entry.Value)
			}
		}
	}
	for _, m := range s.Misfits {
		switch what := survey.Counted(m.Records, "record"); m.Code {
		case survey.CodeUnlistedVersion:
			j.note("%s of %s in %q: stored at version %q, which their definition on the destination does not list", what, m.Resource, m.Cluster, m.Version)
		case clusters.CodeUndecodable:
			j.note("%s of %s in %q cannot be read: nobody knows at which version", what, m.Resource, m.Cluster)
		default:
			j.note("%s of %s in %q: nothing on the destination defines the type", what, m.Resource, m.Cluster)
		}
	}
	return nil
}
