package carry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// exposed reports a value that would be stored in the clear, and must not be: it is encrypted in the origin, or the shard encrypts
// those of its type.
func (c *carrier) exposed(ctx context.Context, r original, to []byte) (bool, error) {
	encrypts, err := c.view.Encrypts(ctx, to)
	if err != nil || encrypts {
		return false, err
	}
	if survey.IsEncrypted(r.Stored) {
		c.view.Raise(string(to), codeWouldBePlaintext.Because(
			"it is encrypted, and %s would be stored in the clear here: no configuration encrypts them", r.key.Resource))
		return true, nil
	}
	example, closed := c.closed[r.key.Resource]
	if closed {
		c.view.Raise(string(to), codeWouldBePlaintext.Because(
			"the shard encrypts %s, as %q, and no configuration says how: it would be stored in the clear", r.key.Resource, example))
	}
	return closed, nil
}

// undecryptableTypes are the types of which the shard has encrypted values and none that opens: nobody said how its servers write them. Where
// one opens, the configuration is that of the servers, and if it encrypts no more, they do not either.
func (c *carrier) undecryptableTypes(ctx context.Context) (map[schema.GroupResource]string, error) {
	closed, known := map[schema.GroupResource]string{}, map[schema.GroupResource]bool{}
	for e, err := range c.view.Reader().Raw(ctx, []byte(c.to.Prefix+"/")) {
		if err != nil {
			return nil, err
		}
		if !survey.IsEncrypted(e.Stored) {
			continue
		}
		key, err := c.to.Parse(e.Key)
		if err != nil || known[key.Resource] {
			continue
		}
		if opens, err := c.knows(ctx, e); err != nil {
			return nil, err
		} else if opens {
			known[key.Resource] = true
			delete(closed, key.Resource)
		} else if closed[key.Resource] == "" {
			closed[key.Resource] = string(e.Key)
		}
	}
	return closed, nil
}

// knows tells whether the configuration of the run encrypts what is stored under a key, or opens this value of it.
func (c *carrier) knows(ctx context.Context, e *inspect.Entry) (bool, error) {
	encrypts, err := c.view.Encrypts(ctx, e.Key)
	if err != nil || encrypts {
		return encrypts, err
	}
	err = c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil, err
}
