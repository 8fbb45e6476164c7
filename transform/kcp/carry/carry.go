package carry

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// edit changes a decrypted value; nil keeps it.
type edit func(value []byte) ([]byte, error)

// carried is a record that was staged.
type carried struct {
	from          *inspect.Entry // as stored in the origin; never decrypted, to save memory
	to            []byte
	cluster       string
	edit          edit
	undecryptable bool // written as it is stored
}

// carrier stages records of an origin in a shard.
type carrier struct {
	view     *transform.View
	from     *origin
	dest     *destination
	to       keys.KCPShard // of dest
	serving  *survey.Serving
	why      string
	held     bool // nothing is staged any more: it would replace existing records
	staged   []carried
	receipts *survey.Receipts  // a section of the report
	changed  map[string][]byte // new values of records of the shard
	// undecryptable has a key of each type of which no encrypted value in the shard can be
	// decrypted.
	undecryptable map[schema.GroupResource]string
}

func newCarrier(ctx context.Context, v *transform.View, from *origin, dest *destination, why string) (*carrier, error) {
	c := &carrier{
		view: v, from: from, dest: dest, to: keys.KCPShard{Prefix: dest.shard.Prefix}, serving: survey.NewServing(dest.shard),
		why: why + from.reader.Snapshot().Path(), receipts: &survey.Receipts{}, changed: map[string][]byte{},
	}
	v.Report().Sections = append(v.Report().Sections, c.receipts)
	v.CheckOutput(func(ctx context.Context, out *inspect.Reader) error {
		return from.reader.Snapshot().Guard(func() error { return c.check(ctx, out) })
	})
	var err error
	c.undecryptable, err = c.undecryptableTypes(ctx)
	return c, err
}

func (c *carrier) raise(key string, code *finding.Code, format string, args ...any) (allowed bool) {
	return c.view.Raise(key, code.Because(format, args...))
}

// refuse reports a finding that nobody can allow.
func (c *carrier) refuse(key string, code *finding.Code, format string, args ...any) {
	c.view.Raise(key, code.Because(format, args...).Decided(finding.Refused))
}

// note reports a finding that needs no decision.
func (c *carrier) note(key string, code *finding.Code, format string, args ...any) {
	c.view.Raise(key, code.Because(format, args...).Decided(finding.Noted))
}

func (c *carrier) keyOf(cluster string) string {
	return string(clusters.LogicalClusterKey(c.to.Prefix, cluster))
}

// carryObject is carry for an object that the shard has to serve.
func (c *carrier) carryObject(ctx context.Context, r original, change edit) error {
	err := c.carry(ctx, r, change)
	if err == nil && r.Undecryptable == nil {
		c.serving.Check(r.key, c.to.Format(r.key), r.Value)
	}
	return err
}

// carry stages one record under its key in the shard, which has none there. The stored bytes stay
// where the API servers of the shard would write the same; else the value is encrypted for them.
func (c *carrier) carry(ctx context.Context, r original, change edit) error {
	to := c.to.Format(r.key)
	if err := c.from.reader.Decrypt(ctx, r.Entry); err != nil {
		return err
	}
	if r.Undecryptable != nil {
		return c.carryUndecryptable(ctx, r, to, change)
	}
	value, err := change.of(r.Entry)
	if err != nil {
		return err
	}
	if exposed, err := c.exposed(ctx, r, to); err != nil || exposed || c.held {
		return err
	}
	same, err := c.reads(ctx, to, r.Stored, value)
	switch s := (carried{from: r.stored(), to: to, cluster: r.key.Cluster, edit: change}); {
	case err != nil:
		return err
	case same:
		return c.stage(ctx, s, r.Stored, c.view.CreateStored)
	default:
		return c.stage(ctx, s, value, c.view.Create)
	}
}

// stage creates a record with the TTL that it has in the origin.
func (c *carrier) stage(
	ctx context.Context, s carried, value []byte, create func(ctx context.Context, key, value []byte, lease int64, why string) error,
) (err error) {
	lease := int64(0)
	if ttl := c.from.ttl(s.from.Lease); ttl != 0 {
		if lease, err = c.view.Grant(ctx, s.from.Lease, ttl); err != nil {
			return err
		}
	}
	c.staged = append(c.staged, s)
	return create(ctx, s.to, value, lease, c.why)
}

// of applies the edit to a decrypted record.
func (change edit) of(e *inspect.Entry) ([]byte, error) {
	if change == nil {
		return e.Value, nil
	}
	value, err := change(e.Value)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", e.Key, err)
	}
	return value, nil
}

// carryUndecryptable carries a value whose bytes are valid under the same key only.
func (c *carrier) carryUndecryptable(ctx context.Context, r original, to []byte, change edit) error {
	key, reason := string(to), fmt.Sprintf("it cannot be decrypted: %v", r.Undecryptable)
	switch {
	case !bytes.Equal(to, r.Key):
		c.refuse(key, codeEncrypted, "%s; under another key than %q no server could decrypt it", reason, r.Key)
		return nil
	case change != nil:
		c.refuse(key, codeEncrypted, "%s; it has to be changed", reason)
		return nil
	case !c.raise(key, codeEncrypted, "%s", reason), c.held:
		return nil
	}
	return c.stage(ctx, carried{from: r.stored(), to: to, cluster: r.key.Cluster, undecryptable: true}, r.Stored, c.view.CreateStored)
}

// reads tells whether the shard's API servers read value from stored, and would write it so.
func (c *carrier) reads(ctx context.Context, to, stored, value []byte) (bool, error) {
	e := &inspect.Entry{Key: to, Stored: stored}
	err := c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil && !e.Stale && bytes.Equal(e.Value, value), err
}

func (c *carrier) change(ctx context.Context, key, value []byte, why string) error {
	if err := c.view.Put(ctx, key, value, why); err != nil {
		return err
	}
	c.changed[string(key)] = value
	return nil
}

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

// knows tells whether the run's configuration encrypts the values of a key, or decrypts this one.
func (c *carrier) knows(ctx context.Context, e *inspect.Entry) (bool, error) {
	encrypts, err := c.view.Encrypts(ctx, e.Key)
	if err != nil || encrypts {
		return encrypts, err
	}
	err = c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil, err
}
