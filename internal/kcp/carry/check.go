package carry

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/snapshot"
)

// check proves that the output has the staged records with their values and TTLs, the changed ones,
// and all others as in the input. Errors wrap snapshot.ErrVerify.
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
		if s := staged[string(rec.Key)]; s != nil {
			delete(staged, string(rec.Key))
			if err := c.compare(ctx, out, s, got, leases); err != nil {
				return err
			}
			if digests[s.cluster] == nil {
				digests[s.cluster] = archive.NewDigest()
			}
			digests[s.cluster].Add(s.to[len(c.to.Prefix):], rec.Value, leases[rec.Lease])
			continue
		}
		if _, is := leases[rec.Lease]; is && before[rec.Lease] == 0 {
			return fmt.Errorf("%w: key %q: it would expire with a lease that was granted to others", snapshot.ErrVerify, rec.Key)
		}
		if want, ok := changed[string(rec.Key)]; ok {
			if err := out.Decrypt(ctx, got); err != nil {
				return err
			}
			if got.Undecryptable == nil && bytes.Equal(got.Value, want) {
				delete(changed, string(rec.Key))
			}
		} else if len(rec.Key) > 0 { // the record that a raised revision leaves behind is of no key
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

func (c *carrier) compare(ctx context.Context, out *inspect.Reader, s *carried, got *inspect.Entry, leases map[int64]int64) error {
	if was, is := c.from.ttl(s.from.Lease), leases[got.Lease]; was != is || (was == 0) != (got.Lease == 0) {
		return fmt.Errorf("%w: key %q: the lease has a TTL of %d s, and not of %d", snapshot.ErrVerify, s.to, is, was)
	}
	if s.undecryptable {
		if !bytes.Equal(got.Stored, s.from.Stored) {
			return fmt.Errorf("%w: key %q: the encrypted value is another", snapshot.ErrVerify, s.to)
		}
		return nil
	}
	from := *s.from
	if err := cmp.Or(c.from.reader.Decrypt(ctx, &from), out.Decrypt(ctx, got)); err != nil {
		return err
	}
	want, err := s.edit.of(&from)
	if err != nil {
		return err
	}
	if from.Undecryptable != nil || got.Undecryptable != nil || !bytes.Equal(got.Value, want) {
		return fmt.Errorf("%w: key %q: the value is not that of the origin", snapshot.ErrVerify, s.to)
	}
	return nil
}

// checkSums compares the other live records with the input, and the counts with the plan.
func (c *carrier) checkSums(ctx context.Context, in *snapshot.Snapshot, came map[string]*archive.Digest, rest archive.Sum) error {
	before := archive.NewRest()
	for rec, err := range in.Live(ctx, nil) {
		if err != nil {
			return err
		}
		if _, changed := c.changed[string(rec.Key)]; !changed && len(rec.Key) > 0 {
			before.Add(rec)
		}
	}
	if was := before.Sum(); was != rest {
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, rest.Keys, rest.SHA256, was.Keys, was.SHA256)
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
