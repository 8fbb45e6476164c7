package carry

import (
	"bytes"
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// checkReport is check, and puts its sums into the report, which says already what each logical cluster was to get.
func (c *carrier) checkReport(ctx context.Context, out *inspect.Reader) error {
	sums, rest, err := c.check(ctx, out)
	if err != nil {
		return err
	}
	c.receipts.Rest = &rest
	for n := range c.receipts.Clusters {
		r := &c.receipts.Clusters[n]
		got := sums[r.Name]
		if got.Keys != r.Keys {
			return fmt.Errorf("%w: %d records of %q came in, and not %d", snapshot.ErrVerify, got.Keys, r.Name, r.Keys)
		}
		r.Sum = got
	}
	return nil
}

// check proves that the output has every record that was staged, with the value and the time to live that it had in the origin, and
// every other live record as the input has it. Errors wrap snapshot.ErrVerify. sums are those of what came in, by logical
// cluster, as it lies in the output.
func (c *carrier) check(ctx context.Context, out *inspect.Reader) (sums map[string]archive.Sum, rest archive.Sum, err error) {
	err = out.Snapshot().Guard(func() error {
		if sums, err = c.checkStaged(ctx, out); err != nil {
			return err
		}
		if err = c.checkChanged(ctx, out); err != nil {
			return err
		}
		if err = c.checkGrants(ctx, out); err != nil {
			return err
		}
		rest, err = c.checkRest(ctx, out)
		return err
	})
	return sums, rest, err
}

// checkStaged opens each record again on both sides.
func (c *carrier) checkStaged(ctx context.Context, out *inspect.Reader) (map[string]archive.Sum, error) {
	leases, err := out.Snapshot().Leases(ctx)
	if err != nil {
		return nil, err
	}
	digests := map[string]*archive.Digest{}
	for _, s := range c.staged {
		got, err := out.Get(ctx, s.to)
		if err != nil {
			return nil, err
		}
		if got == nil {
			return nil, fmt.Errorf("%w: key %q is not there", snapshot.ErrVerify, s.to)
		}
		if err := c.compare(ctx, s, got); err != nil {
			return nil, err
		}
		if was, is := c.from.ttl(s.from.Lease), leases[got.Lease]; was != is || (was == 0) != (got.Lease == 0) {
			return nil, fmt.Errorf("%w: key %q: the lease has a TTL of %d s, and not of %d", snapshot.ErrVerify, s.to, is, was)
		}
		d := digests[s.cluster]
		if d == nil {
			d = archive.NewDigest()
			digests[s.cluster] = d
		}
		d.Add(s.to[len(c.to.Prefix):], got.Stored, leases[got.Lease])
	}
	sums := map[string]archive.Sum{}
	for name, d := range digests {
		sums[name] = d.Sum()
	}
	return sums, nil
}

// compare compares a record of the output with that of the origin, both decrypted where they can be.
func (c *carrier) compare(ctx context.Context, s carried, got *inspect.Entry) error {
	if s.closed {
		if !bytes.Equal(got.Stored, s.from.Stored) {
			return fmt.Errorf("%w: key %q: the encrypted value is another", snapshot.ErrVerify, s.to)
		}
		return nil
	}
	from := *s.from
	if err := c.from.reader.Open(ctx, &from); err != nil {
		return err
	}
	want, err := s.edit.of(&from)
	if err != nil {
		return err
	}
	if from.Sealed != nil || got.Sealed != nil || !bytes.Equal(got.Value, want) {
		return fmt.Errorf("%w: key %q: the value is not that of the origin", snapshot.ErrVerify, s.to)
	}
	return nil
}

// checkChanged compares the records that became others with what they were to become.
func (c *carrier) checkChanged(ctx context.Context, out *inspect.Reader) error {
	for key, want := range c.changed {
		got, err := out.Get(ctx, []byte(key))
		if err != nil {
			return err
		}
		if got == nil || got.Sealed != nil || !bytes.Equal(got.Value, want) {
			return fmt.Errorf("%w: key %q was to be changed, and is not", snapshot.ErrVerify, key)
		}
	}
	return nil
}

// checkGrants looks for records of others that name a lease which was granted: they would expire with it.
func (c *carrier) checkGrants(ctx context.Context, out *inspect.Reader) error {
	before, err := c.view.Reader().Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	after, err := out.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	mine := make(map[string]bool, len(c.staged))
	for _, s := range c.staged {
		mine[string(s.to)] = true
	}
	for rec, err := range out.Snapshot().Live(ctx, nil) {
		if err != nil {
			return err
		}
		_, was := before[rec.Lease]
		if _, is := after[rec.Lease]; is && !was && !mine[string(rec.Key)] {
			return fmt.Errorf("%w: key %q: it would expire with a lease that was granted to others", snapshot.ErrVerify, rec.Key)
		}
	}
	return nil
}

// checkRest compares all other live records, to the last detail, and counts.
func (c *carrier) checkRest(ctx context.Context, out *inspect.Reader) (archive.Sum, error) {
	mine := make(map[string]bool, len(c.staged)+len(c.changed))
	for key := range c.changed {
		mine[key] = true
	}
	before, was, err := restOf(ctx, c.view.Reader().Snapshot(), mine)
	if err != nil {
		return archive.Sum{}, err
	}
	for _, s := range c.staged {
		mine[string(s.to)] = true
	}
	after, is, err := restOf(ctx, out.Snapshot(), mine)
	switch {
	case err != nil:
		return archive.Sum{}, err
	case before != after:
		return archive.Sum{}, fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, after.Keys, after.SHA256, before.Keys, before.SHA256)
	case is != was+len(c.staged):
		return archive.Sum{}, fmt.Errorf("%w: %d live keys, and not %d and %d more", snapshot.ErrVerify, is, was, len(c.staged))
	}
	return before, nil
}

// restOf identifies the live records of a file but some, and counts all. The record that a raised revision leaves behind is of no
// key, and counted for none.
func restOf(ctx context.Context, s *snapshot.Snapshot, but map[string]bool) (rest archive.Sum, all int, err error) {
	r := archive.NewRest()
	for rec, err := range s.Live(ctx, nil) {
		if err != nil {
			return archive.Sum{}, 0, err
		}
		if len(rec.Key) == 0 {
			continue
		}
		if all++; !but[string(rec.Key)] {
			r.Add(rec)
		}
	}
	return r.Sum(), all, nil
}
