package carry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// exposed reports a value that must not be stored in the clear: it is encrypted in the origin, or
// the shard encrypts its type.
func (c *carrier) exposed(ctx context.Context, r original, to []byte) (bool, error) {
	encrypts, err := c.view.Encrypts(ctx, to)
	if err != nil || encrypts {
		return false, err
	}
	example, undecryptable := c.undecryptable[r.key.Resource]
	switch {
	case survey.IsEncrypted(r.Stored):
		c.raise(string(to), survey.CodeWouldBePlaintext,
			"it is encrypted, and %s would be stored in the clear here: no configuration encrypts them", r.key.Resource)
	case undecryptable:
		c.raise(string(to), survey.CodeWouldBePlaintext, "the shard encrypts %s, as %q, and no configuration says how: it would be stored in the clear",
			r.key.Resource, example)
	default:
		return false, nil
	}
	return true, nil
}

// undecryptableTypes returns the types of which the shard has encrypted values, none of which can
// be decrypted. Where one can, the configuration is that of the servers.
func (c *carrier) undecryptableTypes(ctx context.Context) (map[schema.GroupResource]string, error) {
	undecryptable, known := map[schema.GroupResource]string{}, map[schema.GroupResource]bool{}
	for e, err := range c.view.Reader().Raw(ctx, []byte(c.to.Prefix+"/")) {
		if err != nil {
			return nil, err
		}
		if !survey.IsEncrypted(e.Stored) {
			continue
		}
		key, err := e.ParseKey()
		if err != nil || key.Prefix != c.to.Prefix || known[key.Resource] {
			continue
		}
		if knows, err := c.knows(ctx, e); err != nil {
			return nil, err
		} else if knows {
			known[key.Resource] = true
			delete(undecryptable, key.Resource)
		} else if undecryptable[key.Resource] == "" {
			undecryptable[key.Resource] = string(e.Key)
		}
	}
	return undecryptable, nil
}

// knows tells whether the configuration of the run encrypts the values of a key, or decrypts this
// one.
func (c *carrier) knows(ctx context.Context, e *inspect.Entry) (bool, error) {
	encrypts, err := c.view.Encrypts(ctx, e.Key)
	if err != nil || encrypts {
		return encrypts, err
	}
	err = c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil, err
}
