package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// ErrPartial is returned for a file that lacks records which every shard makes when it starts: an
// archive, an etcd for single types, or a shard on which kcp has never run.
var ErrPartial = errors.New("no whole shard of kcp")

// destination is the shard that records are brought into.
type destination struct {
	file  *clusters.File
	shard *clusters.Shard
	name  string         // what it is called; "" where nothing says it
	known *clusters.File // the storages of its file, and the caches of a cache server
}

func readDestination(ctx context.Context, r *inspect.Reader, prefixes []string, asShard string, cache *clusters.File) (*destination, error) {
	file, err := clusters.Read(ctx, r)
	if err != nil {
		return nil, err
	}
	shard, err := file.Shard(prefixes)
	if err != nil {
		return nil, err
	}
	d := &destination{file, shard, cmp.Or(asShard, shard.Name), &clusters.File{Shards: file.Shards, Caches: file.Caches}}
	if cache != nil { // a shard beside the cache is none of this installation's
		d.known.Caches = slices.Concat(file.Caches, cache.Caches)
	}
	return d, checkWhole(shard)
}

// checkWhole returns ErrPartial for a shard whose logical clusters or types are not known.
func checkWhole(s *clusters.Shard) error {
	lacks := ""
	switch {
	case len(s.System) == 0:
		lacks = "no CustomResourceDefinitions in " + clusters.SystemCRDs
	case s.Partial:
		lacks = "no LogicalCluster of " + clusters.SystemShard
	default:
		return nil
	}
	return fmt.Errorf("%w: below %q there are %s; an archive, an etcd for some types alone, and a shard that kcp never ran on are like that",
		ErrPartial, s.Prefix, lacks)
}

func (d *destination) called() string {
	if d.name == "" {
		return "this shard"
	}
	return fmt.Sprintf("shard %q", d.name)
}

// registered returns the Shard object of the destination, nil for none in the files.
func (d *destination) registered() *clusters.RegisteredShard {
	for _, r := range d.known.Registered() {
		if r.Name == d.name {
			return &r
		}
	}
	return nil
}

// presence returns a key of a logical cluster in the file, and a sentence about it; "" for none.
func (d *destination) presence(name string) (key, what string) {
	for _, s := range d.file.Shards {
		where := ""
		if s != d.shard {
			where = fmt.Sprintf(" below the prefix %q, another storage of the same file,", s.Prefix)
		}
		if c := s.Cluster(name); c != nil {
			return string(clusters.LogicalClusterKey(s.Prefix, name)), fmt.Sprintf("%q lives there%s already with %s", name, where,
				survey.Counted(c.Amount.Keys, "key"))
		}
		if o := s.Orphan(name); o != nil {
			what = fmt.Sprintf("there are orphans of %q%s with %s", name, where, survey.Counted(o.Amount.Keys, "key"))
			if where == "" {
				what += "; purge them first: etcdshift kcp purge --orphans " + transform.ShellWord(name)
			}
			return o.Keys[0], what
		}
	}
	return "", ""
}

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
func (c *carrier) reportOrigin() {
	s := c.from.reader.Snapshot()
	info, err := s.Info(c.Ctx)
	if c.Failed(err) {
		return
	}
	c.view.Report().Archive = &info
	for _, odd := range transform.OddFile(s) {
		odd.Reason = s.Path() + ": " + odd.Reason
		c.view.Raise("", odd)
	}
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

// records yields the records of logical clusters below dir, in revision order, not decrypted.
func (o *origin) records(ctx context.Context, dir []byte) iter.Seq2[original, error] {
	return func(yield func(original, error) bool) {
		for e, err := range o.reader.Raw(ctx, dir) {
			if err != nil {
				yield(original{}, err)
				return
			}
			if key, err := e.ParseKey(); err == nil && key.Prefix == o.layout.Prefix && !yield(original{&e, key}, nil) {
				return
			}
		}
	}
}

func (o *origin) definitions(ctx context.Context) iter.Seq2[original, error] {
	return o.records(ctx, o.layout.Dirs(keys.DefinitionType())[0])
}

// defineIn adds the definitions that logical clusters have themselves.
func (c *carrier) defineIn(o *origin, of func(cluster string) bool) {
	for r := range survey.Each(&c.Reading, o.definitions(c.Ctx)) {
		switch {
		case !of(r.key.Cluster) || c.Failed(o.reader.Decrypt(c.Ctx, r.Entry)):
		case r.Undecryptable != nil:
			c.serving.Undecryptable[r.key.Cluster] = true
		default:
			c.serving.Define(r.key, r.Value)
		}
	}
}
