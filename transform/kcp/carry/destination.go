package carry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// ErrPartial is returned for a file that lacks records which every shard makes when it starts: an
// archive, an etcd for single types, or a shard on which kcp has never run.
var ErrPartial = errors.New("no whole shard of kcp")

// destination is the shard that records are brought into.
type destination struct {
	file  *clusters.File
	shard *clusters.Shard
	name  string         // what it is called; "" where nothing says it
	cache *clusters.File // of a cache server
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
	d := &destination{file, shard, cmp.Or(asShard, shard.Name), &clusters.File{}}
	if cache != nil { // a shard beside the cache is none of this installation's
		d.cache.Caches = cache.Caches
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

// knows tells whether an APIExport or APIBinding of the destination's installation has an identity.
func (d *destination) knows(identity string) bool {
	return clusters.Knows(d.file.Shards, slices.Concat(d.file.Caches, d.cache.Caches), nil, identity)
}

// registered returns the Shard object of the destination, nil for none in the files.
func (d *destination) registered() *clusters.RegisteredShard {
	for _, r := range slices.Concat(d.file.Registered(), d.cache.Registered()) {
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
				what += "; purge them first: etcdshift cluster purge --orphans " + transform.ShellWord(name)
			}
			return o.Keys[0], what
		}
	}
	return "", ""
}
