package verify

import (
	"context"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// checkServing notes the objects that kcp does not serve on the destination at their stored
// version. An import reports them, and --allow writes them. Missing definitions are findings.
func (c *checker) checkServing(ctx context.Context) error {
	s := survey.NewServing(c.to)
	for _, cluster := range c.archive.shard.Clusters {
		s.Bind(cluster)
	}
	for _, define := range []bool{true, false} {
		for key, was := range c.archive.sorted() {
			if was.definition || define != (was.key.Resource == keys.DefinitionType()) {
				continue
			}
			if versions, code := s.Versions(was.key); !define && versions == nil && code == nil {
				continue // no Secret is decrypted for it
			}
			e := &inspect.Entry{Key: was.Key, Stored: was.Stored}
			if err := c.archive.Decrypt(ctx, e); err != nil {
				return err
			}
			switch {
			case e.Undecryptable != nil:
			case define:
				s.Define(was.key, e.Value)
			default:
				s.Check(was.key, []byte(c.to.Prefix+key), e.Value)
			}
		}
	}
	for _, m := range s.Unreadable {
		switch what := survey.Counted(m.Records, "record"); m.Code {
		case survey.CodeUnlistedVersion:
			c.note("%s of %s in %q: stored at version %q, which their definition on the destination does not list", what, m.Resource, m.Cluster, m.Version)
		case clusters.CodeUndecodable:
			c.note("%s of %s in %q cannot be read: nobody knows at which version", what, m.Resource, m.Cluster)
		default:
			c.note("%s of %s in %q: nothing on the destination defines the type", what, m.Resource, m.Cluster)
		}
	}
	return nil
}
