package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/transform"
)

// PurgeSpec is the command "kcp purge".
var PurgeSpec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "purge",
	Usage: "write a snapshot without a logical cluster, or without orphans",
	Examples: `etcdshift kcp purge 2y3qvnqz5ga11oc4 root.db root-after.db
etcdshift kcp purge 2y3qvnqz5ga11oc4 cache.db cache-after.db \
    --from-shard root --to-shard shard-1
etcdshift kcp purge --orphans shard-1.db shard-1-after.db`,
	Text: `Deletes every key of the logical cluster NAME from a shard's snapshot, and no other key: each key is
parsed separately, so names of tenants' objects do not matter. Copies of NAME from this shard in a cache of the same
file are deleted too. With --from-shard S the file is a snapshot of a cache server, and only its copies of NAME from
shard S are changed. --orphans deletes keys of logical clusters that do not live on this shard, left by a live
migration: those of NAME, or of all.

With --to-shard T the copies in a cache move to shard T, after the import of the logical cluster there: the key and
the annotation kcp.io/shard of each copy name T; everything else stays. Without it the copies are deleted. Deleting
the last copy of an APIExport requires --allow exports-in-cache: other tenants would lose the labels of its
permission claims.

NAME is a name from "etcdshift kcp list", not a path.

The deletions are new revisions, so that watching clients see them; the old records, Secrets too, stay in the file
until etcd is compacted, and in free pages until etcd is defragmented. --scrub writes the file anew without any record
of these keys.`,
	ArgsText:  "NAME SHARD|CACHE OUT  or  --orphans [NAME] SHARD OUT",
	Arguments: purgeArgs,
	Alone:     true,
	Codes:     purgeCodes(),
	Settles: map[string]string{
		"owner-points-here": "allow it if the logical cluster was imported on another shard: kcp there will correct " +
			"the Workspace",
		"encrypted":        "--encryption-config FILE decrypts LogicalClusters, Workspaces, and copies that move",
		"exports-in-cache": "--to-shard T moves the copies to the new shard of the logical cluster",
		"unknown-shard":    "spell --to-shard as \"etcdshift kcp list\" prints the shard",
		"no-home":          "give the NAME of the logical cluster with the orphans to delete",
	},
	Sections: []transform.Section{&Receipts{}},
	Flags: []transform.Flag{
		{Name: "with-children", Default: false,
			Usage: "also purge the logical clusters on this shard that belong to Workspaces in NAME, at any depth"},
		{Name: "orphans", Default: false, Usage: "purge only the keys of logical clusters that do not live on this " +
			"shard"},
		{Name: "from-shard", Usage: "purge only the copies of NAME from shard `S` in a cache"},
		{Name: "to-shard", Usage: "move the copies in a cache to shard `T`, instead of deleting them"},
		{Name: "as-shard", Usage: "use `S` as the name of this shard (default: the name in the snapshot)"},
		{Name: "scrub", Default: false, Usage: "remove all records of these keys from the file, also older values " +
			"and deletions"},
	},
	New: newPurge,
}

func purgeArgs(a *transform.Args) []string {
	switch {
	case a.IsSet("from-shard"):
		return []string{"NAME", "CACHE", "OUT"}
	case a.Bool("orphans") && len(a.Arguments) < 3:
		return []string{"SHARD", "OUT"}
	}
	return []string{"NAME", "SHARD", "OUT"}
}

func newPurge(_ context.Context, a *transform.Args) (transform.Transform, error) {
	o := &Purge{
		Orphans: a.Bool("orphans"), WithChildren: a.Bool("with-children"), Scrub: a.Bool("scrub"),
		FromShard: a.String("from-shard"), ToShard: a.String("to-shard"), AsShard: a.String("as-shard"),
		Prefixes: a.Prefixes,
	}
	if len(a.Arguments) > 0 {
		o.Name = a.Arguments[0]
	}
	switch cache := o.FromShard != ""; {
	case cache && o.Orphans:
		return nil, transform.Usagef("--from-shard and --orphans exclude each other")
	case cache && o.WithChildren:
		return nil, transform.Usagef("--from-shard and --with-children exclude each other")
	case cache && o.AsShard != "":
		return nil, transform.Usagef("--from-shard and --as-shard exclude each other")
	case o.Orphans && o.WithChildren:
		return nil, transform.Usagef("--orphans and --with-children exclude each other")
	case o.ToShard != "" && o.ToShard == o.FromShard:
		return nil, transform.Usagef("--to-shard and --from-shard are both %q", o.ToShard)
	case o.ToShard != "" && o.Orphans && o.Name == "":
		return nil, transform.Usagef("--to-shard takes the NAME of the logical cluster that lives there")
	}
	return o, nil
}

// Purge deletes logical clusters or orphans. Purge also deletes their copies in a cache of the same
// file, or moves the copies to another shard.
type Purge struct {
	Name         string // of a logical cluster; "" only with Orphans, for all orphans
	Orphans      bool   // only the keys of logical clusters that do not live on the shard
	WithChildren bool   // and all descendants that live on the shard
	FromShard    string // purge copies in a cache instead of a shard: the copies of Name from this shard
	ToShard      string // move the copies in a cache to this shard; "": delete the copies
	AsShard      string // the shard's own name, for its copies in a cache of the same file; "": the name in the file
	Scrub        bool   // remove all their bytes from the file, of every revision; Name may have only older records
	Prefixes     []string
}

// ErrNoHome is returned for a purge of all orphans if no logical cluster can live in the file, as
// in an etcd for single resources (--etcd-servers-overrides).
var ErrNoHome = errors.New("no logical cluster can live")

// ErrSameShard is returned if the origin and destination of copies are the same shard.
var ErrSameShard = finding.WithHint(errors.New("the copies are of that shard already"),
	"--to-shard names the shard of the import, not the origin")

// Errors for a cache instead of a shard, and for a shard instead of a cache.
var (
	ErrCacheAlone = finding.WithHint(fmt.Errorf("%w, but a cache", kcp.ErrNoShard),
		"--from-shard S purges the copies of shard S from a cache; with --to-shard T they move to shard T")
	ErrNoCacheHere = finding.WithHint(fmt.Errorf("%w is in the file", kcp.ErrNoCache),
		"give the snapshot of the cache server: a shard with a separate cache has no copies in its own file")
)

// Plan stages the moved copies and then the deletions, each in the order of keys: no revision lacks
// a copy.
func (p *Purge) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Anew: p.Scrub})
	c, err := p.choose(ctx, v)
	if err != nil {
		return err
	}
	return c.plan(ctx)
}

func (c *choice) plan(ctx context.Context) error {
	objections{c}.checkChoice()
	before, err := c.Split(ctx, c.view.Reader())
	if err != nil {
		return err
	}
	slices.SortFunc(before.Keys, func(a, b Selected) int { return strings.Compare(a.Key, b.Key) })
	for _, s := range before.Keys {
		if err := c.moveCopy(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range before.Keys {
		if err := c.view.Delete(ctx, []byte(s.Key)); err != nil {
			return err
		}
	}
	if c.options.Scrub && len(c.Places) > 0 {
		c.view.Make(transform.Output{Scrub: c.Has})
	}
	receipts := &Receipts{}
	for _, t := range c.targets {
		receipts.Clusters = append(receipts.Clusters, c.receipt(t, before))
	}
	c.view.Report().Sections = append(c.view.Report().Sections, receipts)
	c.view.Make(transform.Output{Check: func(ctx context.Context, out *inspect.Reader) error {
		return c.check(ctx, out, before.Rest.Sum(), receipts)
	}})
	purgeSteps{c, c.view.Report()}.add()
	return nil
}

// receipt counts the purged records of one logical cluster.
func (c *choice) receipt(t *target, s *Split) Receipt {
	r := Receipt{Name: t.name}
	if t.living != nil {
		r.Path = t.living.Path
	}
	if c.shard != nil {
		r.Sum = s.Sum(Place{Prefix: c.shard.Prefix, Cluster: t.name})
	}
	for _, copied := range t.copies {
		r.Copies += s.Sum(placeOfCopy(copied)).Keys
		r.CopiesMoved += c.arrivals[Place{Prefix: copied.Prefix, Shard: c.options.ToShard, Cluster: copied.Cluster}]
	}
	if r.CopiesMoved > 0 {
		r.ToShard = c.options.ToShard
	}
	return r
}

// choice is the plan of a purge.
type choice struct {
	reporter
	*Selection
	*Index
	options   *Purge
	view      *transform.View
	file      *kcp.File
	shard     *kcp.Shard // nil if only a cache is purged
	shardName string     // of shard, or of the purged copies; "" if unknown
	targets   []*target  // parents before their children
	byName    map[string]*target
	moved     []movedCopy
	arrivals  map[Place]int  // number of moved copies, by their new place
	past      map[Place]bool // places with records of any revision, including tombstones; nil without Scrub
}

// target is one logical cluster to purge.
type target struct {
	name   string
	living *kcp.Cluster // nil for orphans, in a cache, and for a logical cluster with only older records
	orphan *kcp.Orphan  // nil for other targets
	copies []*kcp.Copy  // purged with the logical cluster
}

func (o *Purge) choose(ctx context.Context, v *transform.View) (*choice, error) {
	if err := archive.Refuse(ctx, v.Reader().Snapshot()); err != nil {
		return nil, err
	}
	file, err := kcp.ReadChecked(ctx, v.Reader())
	if err != nil {
		return nil, err
	}
	c := &choice{
		reporter: reporter{list: v.Raise}, Selection: newSelection(file.Layouts), Index: newIndex(file), options: o,
		view: v, file: file,
		byName: map[string]*target{}, arrivals: map[Place]int{},
	}
	if o.Scrub {
		if c.past, err = c.Past(ctx, v.Reader()); err != nil {
			return nil, err
		}
	}
	if o.FromShard != "" {
		return c, c.chooseCopies()
	}
	if err := c.chooseShard(); err != nil {
		return nil, err
	}
	if o.Orphans {
		err = c.chooseOrphans(o.Name)
	} else {
		err = c.chooseLiving(o.Name, o.WithChildren)
	}
	if errors.Is(err, kcp.ErrNoCluster) && c.wasThere(o.Name) {
		c.addTarget(&target{name: o.Name})
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return c, c.chooseKeys()
}

func (c *choice) chooseShard() (err error) {
	if c.shard, err = c.file.Shard(c.options.Prefixes); errors.Is(err, kcp.ErrNoShard) {
		if cache, _ := c.file.Cache(c.options.Prefixes); cache != nil {
			err = fmt.Errorf("%w below %q", ErrCacheAlone, cache.Prefix)
		}
	}
	if err != nil {
		return err
	}
	c.shardName, c.prefix = cmp.Or(c.options.AsShard, c.shard.Name), c.shard.Prefix
	return c.checkToShard()
}

func (c *choice) addTarget(t *target) {
	c.targets = append(c.targets, t)
	c.byName[t.name] = t
}

func (c *choice) isPurged(name string) bool { return c.byName[name] != nil }

// chooseOrphans selects the orphans of a name, or all orphans for ""; finding none is not an error.
// All keys of an etcd for single resources would be orphans: such a file is refused.
func (c *choice) chooseOrphans(name string) error {
	if name == "" && len(c.shard.Orphans) > 0 {
		switch {
		case len(c.shard.System) == 0:
			return fmt.Errorf("%w below %q: kcp's own definitions are missing; give the NAME of the logical "+
				"cluster with the keys to delete", ErrNoHome, c.shard.Prefix)
		case c.shard.Partial:
			return fmt.Errorf("%w below %q: the LogicalCluster of %s, which each shard has, is missing; give the "+
				"NAME of the logical cluster with the keys to delete", ErrNoHome, c.shard.Prefix, kcp.SystemShard)
		}
	}
	var names []string
	for _, o := range c.shard.Orphans {
		if name == "" || o.Name == name {
			c.addTarget(&target{name: o.Name, orphan: o})
		}
		names = append(names, fmt.Sprintf("%q", o.Name))
	}
	switch {
	case name == "" || len(c.targets) > 0:
		return nil
	case c.shard.Cluster(name) != nil:
		return fmt.Errorf("%w: %q lives on this shard: its keys are no orphans", kcp.ErrNoCluster, name)
	case len(names) == 0:
		return fmt.Errorf("%w: this shard has no orphans, of %q or any other", kcp.ErrNoCluster, name)
	}
	return fmt.Errorf("%w: this shard has no orphans of %q; it has some of %s", kcp.ErrNoCluster, name,
		strings.Join(names, ", "))
}

// chooseLiving selects a logical cluster, and with withChildren all its descendants.
func (c *choice) chooseLiving(name string, withChildren bool) error {
	root, err := c.shard.Find(name)
	if err != nil {
		return err
	}
	c.addLiving(root)
	for i := 0; withChildren && i < len(c.targets); i++ {
		for _, child := range c.shard.Children(c.targets[i].name) {
			if !c.isPurged(child.Name) {
				c.addLiving(child)
			}
		}
	}
	return nil
}

// addLiving selects a logical cluster, and the keys under its path instead of its name: otherwise
// these keys would remain.
func (c *choice) addLiving(living *kcp.Cluster) {
	c.addTarget(&target{name: living.Name, living: living})
	if o := c.shard.Orphan(living.Path); o != nil && c.shard.Home(living.Path) == living {
		c.addTarget(&target{name: o.Name, orphan: o})
	}
}

// wasThere reports whether the file has only older records of a logical cluster.
func (c *choice) wasThere(name string) bool {
	if c.shard.Cluster(name) != nil || c.shard.Orphan(name) != nil {
		return false
	}
	had := c.past[Place{Prefix: c.shard.Prefix, Cluster: name}]
	for prefix := range c.Caches {
		had = had || c.past[Place{Prefix: prefix, Shard: c.shardName, Cluster: name}]
	}
	return had
}

// chooseKeys selects the keys of the logical clusters in the shard, and of this shard's copies in
// the caches of the file, live or not.
func (c *choice) chooseKeys() (err error) {
	for _, t := range c.targets {
		c.Places[Place{Prefix: c.shard.Prefix, Cluster: t.name}] = true
		if t.copies, err = c.AddCopies(c.Selection, t.name, c.shardName); err != nil {
			return err
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(c.past), Place.Compare) {
		switch {
		case !c.Caches[at.Prefix] || !c.isPurged(at.Cluster):
		case c.shardName == "":
			return at.ShardUnknown()
		case at.Shard == c.shardName:
			c.Places[at] = true
		}
	}
	return nil
}
