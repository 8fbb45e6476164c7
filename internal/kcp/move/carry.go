package move

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// edit changes a decrypted value; nil keeps the value.
type edit func(value []byte) ([]byte, error)

// carried is a staged record.
type carried struct {
	from    *inspect.Entry // as stored in the origin; never decrypted, to save memory
	to      []byte
	cluster string
}

// carrier stages records of an origin in a shard.
type carrier struct {
	reporter
	view     *transform.View
	from     *origin
	dest     *destination
	to       keys.KCPShard // keys of dest
	serving  *Serving
	held     bool // stage nothing: the records would replace existing records
	staged   []carried
	receipts *Receipts         // a section of the report
	changed  map[string][]byte // new values of records of the shard
	stager   *objects.Carrier
}

func newCarrier(ctx context.Context, v *transform.View, from *origin, dest *destination) (*carrier, error) {
	c := &carrier{
		reporter: reporter{v.Raise, dest.shard.Prefix}, view: v, from: from, dest: dest,
		to:      keys.KCPShard{Prefix: dest.shard.Prefix},
		serving: newServing(dest.shard), receipts: &Receipts{}, changed: map[string][]byte{},
	}
	v.Report().Sections = append(v.Report().Sections, c.receipts)
	v.Make(transform.Output{Check: c.check})
	var err error
	c.stager, err = objects.NewCarrier(ctx, v, from.reader)
	return c, err
}

// carryObject is carry for an object that the shard has to serve.
func (c *carrier) carryObject(ctx context.Context, r original, change edit) error {
	if err := c.carry(ctx, r, change); err != nil {
		return err
	}
	if r.Undecryptable == nil {
		c.serving.Check(r.key, c.to.Format(r.key), r.Value)
	}
	return nil
}

// carry stages one record under its key in the shard, which must be unused.
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
	_, reason, err := c.stager.Exposes(ctx, r.Entry, to, "the shard")
	if err != nil {
		return err
	}
	if reason != "" {
		c.raise(string(to), codeWouldBePlaintext, "%s", reason)
	}
	if reason != "" || c.held {
		return nil
	}
	c.staged = append(c.staged, carried{r.stored(), to, r.key.Cluster})
	return c.stager.Create(ctx, r.Entry, to, value)
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

// carryUndecryptable carries a value whose bytes are valid only under the same key.
func (c *carrier) carryUndecryptable(ctx context.Context, r original, to []byte, change edit) error {
	key, reason := string(to), fmt.Sprintf("it cannot be decrypted: %v", r.Undecryptable)
	switch {
	case !bytes.Equal(to, r.Key):
		c.refuse(key, codeEncrypted, "%s; under another key than %q no server could decrypt it", reason, r.Key)
	case change != nil:
		c.refuse(key, codeEncrypted, "%s; it has to be changed", reason)
	case c.raise(key, codeEncrypted, "%s", reason) && !c.held:
		c.staged = append(c.staged, carried{r.stored(), to, r.key.Cluster})
		return c.stager.CreateStored(ctx, r.Entry, to)
	}
	return nil
}

// check proves that the output has the staged records with their values and TTLs, the changed
// records, and all other records as in the input. Errors wrap snapshot.ErrVerify.
func (c *carrier) check(ctx context.Context, out *inspect.Reader) error {
	in := c.view.Reader().Snapshot()
	before, err := in.Leases(ctx)
	leases, outErr := out.Snapshot().Leases(ctx)
	if err := cmp.Or(err, outErr); err != nil {
		return err
	}
	staged, changed := make(map[string]*carried, len(c.staged)), maps.Clone(c.changed)
	for i := range c.staged {
		staged[string(c.staged[i].to)] = &c.staged[i]
	}
	digests, rest := map[string]*archive.Digest{}, archive.NewRest()
	for rec, err := range out.Snapshot().Live(ctx, nil) {
		if err != nil {
			return err
		}
		got := &inspect.Entry{Key: rec.Key, Stored: rec.Value, Lease: rec.Lease}
		if _, err := c.stager.Check(ctx, out, rec, leases); err != nil {
			return err
		}
		if s := staged[string(rec.Key)]; s != nil {
			delete(staged, string(rec.Key))
			if digests[s.cluster] == nil {
				digests[s.cluster] = archive.NewDigest()
			}
			digests[s.cluster].Add(s.to[len(c.to.Prefix):], rec.Value, leases[rec.Lease])
			continue
		}
		if _, is := leases[rec.Lease]; is && before[rec.Lease] == 0 {
			return fmt.Errorf("%w: key %q: it would expire with a lease that was granted to others",
				snapshot.ErrVerify, rec.Key)
		}
		if want, ok := changed[string(rec.Key)]; ok {
			if err := out.Decrypt(ctx, got); err != nil {
				return err
			}
			if got.Undecryptable == nil && bytes.Equal(got.Value, want) {
				delete(changed, string(rec.Key))
			}
		} else if len(rec.Key) > 0 { // the record of a raised revision has no key
			rest.Add(rec)
		}
	}
	for key := range staged {
		return fmt.Errorf("%w: key %q is not there", snapshot.ErrVerify, key)
	}
	for key := range changed {
		return fmt.Errorf("%w: key %q was to be changed, and is not", snapshot.ErrVerify, key)
	}
	return c.checkSums(ctx, in, digests, rest.Sum())
}

// checkSums compares the live records outside the move with the input by their digest, and the
// numbers of moved records with the plan.
func (c *carrier) checkSums(
	ctx context.Context, in *snapshot.Snapshot, came map[string]*archive.Digest, rest archive.Sum,
) error {
	before := archive.NewRest()
	for rec, err := range in.Live(ctx, nil) {
		if err != nil {
			return err
		}
		if _, changed := c.changed[string(rec.Key)]; !changed && len(rec.Key) > 0 {
			before.Add(rec)
		}
	}
	if err := before.Sum().Check(rest); err != nil {
		return err
	}
	c.receipts.Rest = &rest
	for i := range c.receipts.Clusters {
		r, got := &c.receipts.Clusters[i], archive.Sum{}
		if d := came[r.Name]; d != nil {
			got = d.Sum()
		}
		if got.Keys != r.Keys {
			return fmt.Errorf("%w: %d records of %q came in, and not %d", snapshot.ErrVerify, got.Keys, r.Name, r.Keys)
		}
		r.Sum = got
	}
	return nil
}
