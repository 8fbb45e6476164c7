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

// edit makes another value of a decrypted one; nil leaves it.
type edit func(value []byte) ([]byte, error)

// carried is a record that was staged.
type carried struct {
	from    *inspect.Entry // as it is stored in the origin, never opened: what is decrypted would stay in memory
	to      []byte
	cluster string
	edit    edit
	closed  bool // it stays encrypted as it is: no key opens it
}

// carrier stages records of an origin in a shard.
type carrier struct {
	view     *transform.View
	from     *origin
	dest     *destination
	to       keys.KCPShard // of dest
	serving  *survey.Serving
	why      string
	held     bool // nothing is staged any more: it would come over what is there
	staged   []carried
	receipts *survey.Receipts // a section of the report
	// changed are records that the shard has and that became others, with what they become.
	changed map[string][]byte
	// closed are the types of which the shard has encrypted values that no key here decrypts, with a key of each.
	closed map[schema.GroupResource]string
}

func newCarrier(ctx context.Context, v *transform.View, from *origin, dest *destination, why string) (*carrier, error) {
	c := &carrier{
		view: v, from: from, dest: dest, to: keys.KCPShard{Prefix: dest.shard.Prefix}, serving: survey.NewServing(dest.shard),
		why: why + from.reader.Snapshot().Path(), receipts: &survey.Receipts{}, changed: map[string][]byte{},
	}
	v.Report().Sections = append(v.Report().Sections, c.receipts)
	var err error
	c.closed, err = c.undecryptableTypes(ctx)
	return c, err
}

// keyOf is where the LogicalCluster of a logical cluster lies in the shard.
func (c *carrier) keyOf(cluster string) string {
	return string(clusters.LogicalClusterKey(c.to.Prefix, cluster))
}

// carryObject is carry for an object of a logical cluster, which the shard has to serve.
func (c *carrier) carryObject(ctx context.Context, r original, change edit) error {
	err := c.carry(ctx, r, change)
	if err == nil && r.Undecryptable == nil {
		c.serving.Check(r.key, c.to.Format(r.key), r.Value)
	}
	return err
}

// carry stages one record under its key in the shard, which has none there. The stored bytes stay where the API servers of the shard
// read the same from them and would write no others; else they are encrypted as those would.
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
	if exposed, err := c.exposed(ctx, r, to); err != nil || exposed {
		return err
	}
	if c.held {
		return nil
	}
	lease, err := c.lease(ctx, r.Lease)
	if err != nil {
		return err
	}
	c.staged = append(c.staged, carried{from: r.stored(), to: to, cluster: r.key.Cluster, edit: change})
	if same, err := c.reads(ctx, to, r.Stored, value); err != nil {
		return err
	} else if same {
		return c.view.CreateStored(ctx, to, r.Stored, lease, c.why)
	}
	return c.view.Create(ctx, to, value, lease, c.why)
}

// of is what the edit makes of a record that is open.
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

// carryUndecryptable is carry for a value that no key opens: its bytes stand for the value under the very same key only.
func (c *carrier) carryUndecryptable(ctx context.Context, r original, to []byte, change edit) error {
	reason := fmt.Sprintf("it is encrypted and cannot be decrypted: %v", r.Undecryptable)
	switch {
	case !bytes.Equal(to, r.Key):
		c.view.Raise(string(to), codeEncrypted.Because("%s; under another key than %q no server could decrypt it", reason, r.Key).Decided(finding.Refused))
		return nil
	case change != nil:
		c.view.Raise(string(to), codeEncrypted.Because("%s; it has to be changed", reason).Decided(finding.Refused))
		return nil
	case !c.view.Raise(string(to), codeEncrypted.Because("%s", reason)), c.held:
		return nil
	}
	lease, err := c.lease(ctx, r.Lease)
	if err != nil {
		return err
	}
	c.staged = append(c.staged, carried{from: r.stored(), to: to, cluster: r.key.Cluster, closed: true})
	return c.view.CreateStored(ctx, to, r.Stored, lease, c.why)
}

// reads tells whether the API servers of the shard read value from what is stored, and would store it in no other way.
func (c *carrier) reads(ctx context.Context, to, stored, value []byte) (bool, error) {
	e := &inspect.Entry{Key: to, Stored: stored}
	err := c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil && !e.Stale && bytes.Equal(e.Value, value), err
}

// lease is the lease that a record gets for that of the origin: one with the same time to live.
func (c *carrier) lease(ctx context.Context, id int64) (int64, error) {
	ttl := c.from.ttl(id)
	if ttl == 0 {
		return 0, nil
	}
	return c.view.Grant(ctx, id, ttl)
}

// change stages another value for a record that the shard has.
func (c *carrier) change(ctx context.Context, key, value []byte, why string) error {
	if err := c.view.Put(ctx, key, value, why); err != nil {
		return err
	}
	c.changed[string(key)] = value
	return nil
}
