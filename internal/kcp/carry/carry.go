// Package carry brings records of logical clusters into the snapshot of a shard: Import from an
// archive, PutBack orphans that a live migration left on another shard.
package carry

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
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
	survey.Reading
	view     *transform.View
	from     *origin
	dest     *destination
	to       keys.KCPShard // of dest
	serving  *survey.Serving
	held     bool // nothing is staged any more: it would replace existing records
	staged   []carried
	receipts *survey.Receipts  // a section of the report
	changed  map[string][]byte // new values of records of the shard
	// undecryptable has a key of each type of which no encrypted value in the shard can be
	// decrypted.
	undecryptable map[schema.GroupResource]string
}

func newCarrier(ctx context.Context, v *transform.View, from *origin, dest *destination) *carrier {
	c := &carrier{
		Reading: survey.Reading{Ctx: ctx}, view: v, from: from, dest: dest, to: keys.KCPShard{Prefix: dest.shard.Prefix},
		serving: survey.NewServing(dest.shard), receipts: &survey.Receipts{}, changed: map[string][]byte{},
		undecryptable: map[schema.GroupResource]string{},
	}
	v.Report().Sections = append(v.Report().Sections, c.receipts)
	v.Make(transform.Output{Check: func(ctx context.Context, out *inspect.Reader) error {
		return from.reader.Snapshot().Guard(func() error { return c.check(ctx, out) })
	}})
	c.findUndecryptable()
	return c
}

func (c *carrier) raise(key string, code *finding.Code, format string, args ...any) (allowed bool) {
	return c.Err == nil && c.view.Raise(key, code.Because(format, args...))
}

// refuse reports a finding that nobody can allow.
func (c *carrier) refuse(key string, code *finding.Code, format string, args ...any) {
	if c.Err == nil {
		c.view.Raise(key, code.Because(format, args...).Decided(finding.Refused))
	}
}

// note reports a finding that needs no decision.
func (c *carrier) note(key string, code *finding.Code, format string, args ...any) {
	if c.Err == nil {
		c.view.Raise(key, code.Because(format, args...).Decided(finding.Noted))
	}
}

func (c *carrier) keyOf(cluster string) string {
	return string(clusters.LogicalClusterKey(c.to.Prefix, cluster))
}

// carryObject is carry for an object that the shard has to serve.
func (c *carrier) carryObject(r original, change edit) {
	if c.carry(r, change); c.Err == nil && r.Undecryptable == nil {
		c.serving.Check(r.key, c.to.Format(r.key), r.Value)
	}
}

// carry stages one record under its key in the shard, which has none there. The stored bytes stay
// where the API servers of the shard would write the same; else the value is encrypted for them.
func (c *carrier) carry(r original, change edit) {
	to := c.to.Format(r.key)
	if c.Err != nil || c.Failed(c.from.reader.Decrypt(c.Ctx, r.Entry)) {
		return
	}
	if r.Undecryptable != nil {
		c.carryUndecryptable(r, to, change)
		return
	}
	value, err := change.of(r.Entry)
	if c.Failed(err) || c.exposed(r, to) || c.held {
		return
	}
	s := carried{from: r.stored(), to: to, cluster: r.key.Cluster, edit: change}
	if c.reads(to, r.Stored, value) {
		c.stage(s, r.Stored, c.view.CreateStored)
	} else {
		c.stage(s, value, c.view.Create)
	}
}

// stage creates a record with the TTL that it has in the origin.
func (c *carrier) stage(s carried, value []byte, create func(ctx context.Context, key, value []byte, lease int64) error) {
	lease, err := int64(0), error(nil)
	if ttl := c.from.ttl(s.from.Lease); ttl != 0 {
		lease, err = c.view.Grant(c.Ctx, s.from.Lease, ttl)
	}
	if !c.Failed(err) {
		c.staged = append(c.staged, s)
		c.Failed(create(c.Ctx, s.to, value, lease))
	}
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
func (c *carrier) carryUndecryptable(r original, to []byte, change edit) {
	key, reason := string(to), fmt.Sprintf("it cannot be decrypted: %v", r.Undecryptable)
	switch {
	case !bytes.Equal(to, r.Key):
		c.refuse(key, codeEncrypted, "%s; under another key than %q no server could decrypt it", reason, r.Key)
	case change != nil:
		c.refuse(key, codeEncrypted, "%s; it has to be changed", reason)
	case c.raise(key, codeEncrypted, "%s", reason) && !c.held:
		c.stage(carried{from: r.stored(), to: to, cluster: r.key.Cluster, undecryptable: true}, r.Stored, c.view.CreateStored)
	}
}

// reads tells whether the shard's API servers read value from stored, and would write it so.
func (c *carrier) reads(to, stored, value []byte) bool {
	e := &inspect.Entry{Key: to, Stored: stored}
	return !c.Failed(c.view.Reader().Decrypt(c.Ctx, e)) && e.Undecryptable == nil && !e.Stale && bytes.Equal(e.Value, value)
}

func (c *carrier) change(key, value []byte) {
	if c.Err == nil && !c.Failed(c.view.Put(c.Ctx, key, value)) {
		c.changed[string(key)] = value
	}
}

// exposed reports a value that must not be stored in the clear: it is encrypted in the origin, or
// the shard encrypts its type.
func (c *carrier) exposed(r original, to []byte) bool {
	encrypts, err := c.view.Encrypts(c.Ctx, to)
	if c.Failed(err) || encrypts {
		return false
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
		return false
	}
	return true
}

// findUndecryptable finds the types of which the shard has encrypted values, none of which can
// be decrypted. Where one can, the configuration is that of the servers.
func (c *carrier) findUndecryptable() {
	known := map[schema.GroupResource]bool{}
	for e := range survey.Each(&c.Reading, c.view.Reader().Raw(c.Ctx, []byte(c.to.Prefix+"/"))) {
		if !survey.IsEncrypted(e.Stored) {
			continue
		}
		switch key, err := e.ParseKey(); {
		case err != nil || key.Prefix != c.to.Prefix || known[key.Resource]:
		case c.knows(&e):
			known[key.Resource] = true
			delete(c.undecryptable, key.Resource)
		case c.undecryptable[key.Resource] == "":
			c.undecryptable[key.Resource] = string(e.Key)
		}
	}
}

// knows tells whether the run's configuration encrypts the values of a key, or decrypts this one.
func (c *carrier) knows(e *inspect.Entry) bool {
	encrypts, err := c.view.Encrypts(c.Ctx, e.Key)
	return !c.Failed(err) && (encrypts || !c.Failed(c.view.Reader().Decrypt(c.Ctx, e)) && e.Undecryptable == nil)
}
