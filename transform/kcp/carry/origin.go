package carry

import (
	"context"
	"fmt"
	"iter"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// origin is the source of records: an archive, or a shard with orphans.
type origin struct {
	reader *inspect.Reader
	layout keys.KCPShard
	shard  *clusters.Shard
	leases map[int64]int64 // TTL in seconds, by id
}

// openOrigin reads a snapshot with clusters.Read or clusters.ReadChecked. prefixes name its storage
// where there are several, or where it cannot be detected.
func openOrigin(
	ctx context.Context, s *snapshot.Snapshot, read func(context.Context, *inspect.Reader) (*clusters.File, error),
	decrypter inspect.Decrypter, prefixes ...string,
) (*origin, error) {
	o := &origin{reader: inspect.NewReader(s, decrypter, prefixes...)}
	file, err := read(ctx, o.reader)
	if err == nil {
		o.shard, err = file.Shard(prefixes)
	}
	if err == nil {
		o.leases, err = s.Leases(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path(), err)
	}
	o.layout = keys.KCPShard{Prefix: o.shard.Prefix}
	return o, nil
}

// reportOrigin adds the origin's file to the report, and warnings about it.
func (c *carrier) reportOrigin(ctx context.Context) error {
	s := c.from.reader.Snapshot()
	info, err := transform.InfoOf(ctx, s)
	if err != nil {
		return err
	}
	c.view.Report().Archive = &info
	for _, odd := range transform.OddFile(s) {
		odd.Reason = s.Path() + ": " + odd.Reason
		c.view.Raise("", odd)
	}
	return nil
}

// original is a record of the origin and its parsed key.
type original struct {
	*inspect.Entry
	key keys.Key
}

// stored is the record without its decrypted value. Its bytes are those of the mapped file.
func (r original) stored() *inspect.Entry {
	return &inspect.Entry{Key: r.Key, Stored: r.Stored, Lease: r.Lease}
}

// ttl is the TTL of a lease in seconds; 0 for no lease, and for one that the file does not have.
func (o *origin) ttl(id int64) int64 {
	if id == 0 {
		return 0
	}
	return max(o.leases[id], 0)
}

// records yields the records below the origin's prefix whose keys begin with dir, in revision
// order, not decrypted. Keys of no logical cluster are skipped.
func (o *origin) records(ctx context.Context, dir []byte) iter.Seq2[original, error] {
	return func(yield func(original, error) bool) {
		for e, err := range o.reader.Raw(ctx, dir) {
			if err != nil {
				yield(original{}, err)
				return
			}
			if key, err := e.ParseKey(); err == nil && key.Prefix == o.layout.Prefix && !yield(original{e, key}, nil) {
				return
			}
		}
	}
}

func (o *origin) definitions(ctx context.Context) iter.Seq2[original, error] {
	return o.records(ctx, o.layout.Dirs(keys.DefinitionType())[0])
}

// defineIn adds the definitions that logical clusters have themselves.
func (o *origin) defineIn(ctx context.Context, s *survey.Serving, of func(cluster string) bool) error {
	for r, err := range o.definitions(ctx) {
		if err != nil {
			return err
		}
		if !of(r.key.Cluster) {
			continue
		}
		if err := o.reader.Decrypt(ctx, r.Entry); err != nil {
			return err
		}
		if r.Undecryptable != nil {
			s.Undecryptable[r.key.Cluster] = true
			continue
		}
		s.Define(r.key, r.Value)
	}
	return nil
}
