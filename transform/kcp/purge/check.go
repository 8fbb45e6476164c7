package purge

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// check proves that the output has no purged key, and every other live record as in the input.
// Errors wrap snapshot.ErrVerify.
func (c *choice) check(ctx context.Context, out *inspect.Reader, was archive.Sum, receipts *survey.Receipts) error {
	for _, m := range c.moved {
		c.Created[m.to] = true
	}
	after, err := c.Split(ctx, out)
	if err != nil {
		return err
	}
	if n := len(after.Keys); n > 0 {
		return fmt.Errorf("%w: of what was purged %s left, such as %q", snapshot.ErrVerify, survey.Counted(n, "key"), after.Keys[0].Key)
	}
	if is := after.Rest.Sum(); is != was {
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, is.Keys, is.SHA256, was.Keys, was.SHA256)
	}
	receipts.Rest = &was
	if err := c.checkMoved(ctx, out); err != nil || !c.options.Scrub {
		return err
	}
	return c.checkScrubbed(ctx, out)
}

// checkScrubbed looks for purged records of any revision, by the names of the logical clusters.
func (c *choice) checkScrubbed(ctx context.Context, out *inspect.Reader) error {
	for rec, err := range out.Snapshot().Records(ctx) {
		if err != nil {
			return err
		}
		k, _, err := c.Layouts.Parse(rec.Key)
		if err != nil || !c.goes(k.Cluster) {
			continue
		}
		ofShard := c.shard != nil && k.Prefix == c.shard.Prefix
		if ofShard || c.Caches[k.Prefix] && k.Shard == c.shardName {
			return fmt.Errorf("%w: revision %s of %q is left", snapshot.ErrVerify, rec.Revision, rec.Key)
		}
	}
	return nil
}
