package move

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// ExtractSpec is the command "kcp extract".
var ExtractSpec = transform.Spec{
	Group: transform.GroupKCP,
	Name:  "extract",
	Usage: "write one logical cluster into an archive",
	Examples: `etcdshift kcp extract 2y3qvnqz5ga11oc4 root.db consumer.archive
etcdshift kcp extract 2y3qvnqz5ga11oc4 root.db consumer.archive \
    --with-children
etcdshift get consumer.archive configmaps -A --cluster 2y3qvnqz5ga11oc4`,
	Text: `Writes every live record of the logical cluster NAME, and of no other, into a new file: keys, values,
revisions and leases as on the shard, byte for byte, encrypted or not, and the definitions bound by its APIBindings.
A manifest lists the content and the dependencies of the archive, with digests; docs/reference/formats.md explains
them.

NAME is a name from "etcdshift kcp list", not a path.

The archive is an etcd snapshot; status, get, keys, sizes, verify and other commands read it. Do not restore it as a
shard: it contains only the logical cluster. kcp import adds it to another shard. The old shard does not change until
kcp purge deletes the logical cluster there.`,
	ArgsText:  "NAME SHARD ARCHIVE",
	Arguments: func(*transform.Args) []string { return []string{"NAME", "SHARD", "ARCHIVE"} },
	Builds:    true,
	Codes:     extractCodes(),
	Settles:   map[string]string{codeNotDecrypted.Name: "decrypt them with --encryption-config FILE"},
	Sections:  []transform.Section{&Receipts{}},
	Appendix:  &Manifest{},

	NotForRestore: true,
	Flags: []transform.Flag{
		{Name: "with-children", Default: false,
			Usage: "also extract the logical clusters on this shard that belong to Workspaces in NAME, at any depth"},
		{Name: "as-shard", Usage: "use `S` as the name of this shard (default: the name in the snapshot)"},
	},
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		return &Extract{
			Name: a.Arguments[0], Archive: a.Out, AsShard: a.String("as-shard"), WithChildren: a.Bool("with-children"),
			Prefixes: a.Prefixes,
		}, nil
	},
}

// Extract writes an archive of one logical cluster, and with WithChildren of its children. Values
// are equal to the shard's, byte for byte.
type Extract struct {
	Name         string   // of the logical cluster
	Archive      string   // path of the output, for the steps of the report
	AsShard      string   // the shard's own name; "": the name in the file
	WithChildren bool     // include all descendants that live on the same shard
	Prefixes     []string // of the shard, if the file has several
}

// Plan counts the records of the archive. A dry run finds all problems of a run.
func (x *Extract) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Anew: true, NotForRestore: true})
	e := &extraction{
		Extract: x, reporter: reporter{list: v.Report().Raise}, view: v, src: v.Reader().Snapshot(),
		chosen: map[string]*kcp.Cluster{}, odd: map[string][]string{},
	}
	if err := e.find(ctx); err != nil {
		return err
	}
	origin, err := e.src.Info(ctx)
	if err != nil {
		return err
	}
	e.check()
	m, err := e.count(ctx, origin)
	if err != nil {
		return err
	}
	e.steps(m)
	receipts := &Receipts{Untold: true}
	receipts.Receive(m)
	v.Report().Sections = append(v.Report().Sections, receipts)
	if _, refusing := v.Report().Errors(); refusing > 0 {
		return nil
	}
	v.Report().Appendix = &Manifest{m}
	if err := e.src.Sound(ctx); err != nil { // damage must not become the content of an archive
		return err
	}
	v.Make(transform.Output{Check: func(ctx context.Context, out *inspect.Reader) error {
		is, err := archive.OpenChecked(ctx, out.Snapshot())
		if err == nil && !reflect.DeepEqual(is, m) {
			err = fmt.Errorf("%w: its manifest is not the one that was written", snapshot.ErrVerify)
		}
		return err
	}})
	return e.build(ctx, m)
}

// extraction is one run of Extract.
type extraction struct {
	*Extract
	reporter
	view      *transform.View
	src       *snapshot.Snapshot
	file      *kcp.File
	index     *Index
	shard     *kcp.Shard
	shardName string
	chosen    map[string]*kcp.Cluster // logical clusters of the archive, by name
	order     []*kcp.Cluster          // the same, parents before their children
	// taken has the places of the archive's records, and of their copies in a cache, which are not
	// in the archive.
	taken  *Selection
	needs  map[string]need     // definitions of the archive, by their keys
	keys   [][]byte            // of the archive's records, in revision order
	leases map[int64]int64     // TTL in seconds by id, of leases that an archive can have
	odd    map[string][]string // by key, the parts of a record that the manifest omits
}

func (e *extraction) find(ctx context.Context) (err error) {
	reader := e.view.Reader()
	if err := archive.Refuse(ctx, e.src); err != nil { // the manifest would name an origin that is not a shard
		return err
	}
	if e.file, err = kcp.ReadChecked(ctx, reader); err != nil {
		return err
	}
	if e.shard, err = e.file.Shard(e.Prefixes); err != nil {
		return err
	}
	e.prefix = e.shard.Prefix
	root, err := e.shard.Find(e.Name)
	if err != nil {
		return err
	}
	e.index, e.taken = newIndex(e.file), newSelection(e.file.Layouts)
	e.shardName = cmp.Or(e.AsShard, e.shard.Name)
	if err := e.choose(root); err != nil {
		return err
	}
	all, err := e.src.Leases(ctx)
	e.leases = archive.Leases(all)
	return err
}

// choose adds a logical cluster, and with WithChildren all its descendants.
func (e *extraction) choose(c *kcp.Cluster) error {
	e.chosen[c.Name] = c
	e.order = append(e.order, c)
	e.taken.Places[Place{Prefix: e.shard.Prefix, Cluster: c.Name}] = true
	if _, err := e.index.AddCopies(e.taken, c.Name, e.shardName); err != nil ||
		!e.WithChildren { // a purge would delete these copies: they do not belong to the rest
		return err
	}
	for _, child := range e.shard.Children(c.Name) {
		if e.chosen[child.Name] != nil {
			continue
		}
		if err := e.choose(child); err != nil {
			return err
		}
	}
	return nil
}

func (e *extraction) build(ctx context.Context, m *archive.Manifest) error {
	notes, err := m.Notes()
	if err != nil {
		return err
	}
	content := snapshot.Content{Records: e.records(ctx), Revision: m.Origin.Revision, Notes: notes}
	if content.Leases, err = m.Held(); err != nil {
		return err
	}
	e.view.Make(transform.Output{Build: &content})
	return nil
}

func (e *extraction) records(ctx context.Context) iter.Seq2[*snapshot.Record, error] {
	return func(yield func(*snapshot.Record, error) bool) {
		for _, key := range e.keys {
			if rec, err := e.src.Get(ctx, key); !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func (e *extraction) steps(m *archive.Manifest) {
	r, also := e.view.Report(), ""
	name, in, out := transform.ShellWord(e.Name), transform.ShellWord(r.Input.Path), transform.ShellWord(e.Archive)
	if len(m.Clusters) > 1 {
		also = " --with-children"
	}
	if e.AsShard != "" {
		also += " --as-shard " + transform.ShellWord(e.AsShard)
	}
	for _, p := range e.Prefixes {
		also += " --prefix " + transform.ShellWord(p)
	}
	r.AddStep("store the archive as safely as the snapshot: it has the Secrets of the cluster, as they are stored")
	for _, x := range m.Encryption {
		r.AddStep("%s encrypted by %s: the API servers of the destination need that key, or the import an "+
			"--encryption-config", phrase.Count(x.Keys, "value"), x.Name)
	}
	if n := len(m.Missing); n > 0 {
		r.AddStep("%s missing in the archive; the destination must have them", phrase.Count(n, "bound definition"))
	}
	r.AddStep("to move it, stop all front-proxies first, then kcp of both shards, and extract again from a snapshot " +
		"of after that")
	r.AddStep("take it in elsewhere: etcdshift kcp import %s DESTINATION DESTINATION-OUT", out)
	r.AddStep("take it out here: etcdshift kcp purge %s %s ORIGIN-OUT%s --to-shard NEW-SHARD", name, in, also)
	stepToMoveCopies(r, m.Names(), m.Origin.Shard, "")
	stepToVerify(r, e.Archive, "DESTINATION-OUT", true)
	stepToStart(r)
}

// check reports reasons against an archive, and parts missing from the archive.
func (e *extraction) check() {
	for _, c := range e.order {
		if !isName(c.Name) {
			e.raise(e.keyOf(c.Name), codeOddName, "%.100q is no name of a logical cluster that a manifest can list",
				c.Name)
		}
	}
	if e.AsShard != "" && e.shard.Name != "" && e.AsShard != e.shard.Name {
		e.raise(e.keyOf(kcp.SystemShard), codeShardName,
			"this file calls itself shard %q, and --as-shard %q: the manifest says the "+
				"latter, and copies from that in a cache of the same file are no part of the rest", e.shard.Name,
			e.AsShard)
	}
	for _, c := range e.order {
		e.checkCluster(c)
		e.checkChildren(c)
	}
	e.checkUnreadable()
	warnUnknown(e.view, e.file, map[string]bool{e.shard.Prefix: true})
}

func (e *extraction) checkCluster(c *kcp.Cluster) {
	key := e.keyOf(c.Name)
	e.checkSystem(key, c.Name)
	e.checkTerminating(key, c)
	e.checkMigrating(key, c)
	if o := e.shard.Orphan(c.Path); o != nil && e.shard.Home(c.Path) == c {
		e.raise(o.Keys[0], codeKeysUnderPath, "%s of %q under its path %q", phrase.Count(o.Amount.Keys, "key"), c.Name,
			c.Path)
	}
	workspaces := e.workspaceKeys(c)
	for _, p := range c.Problems {
		switch {
		case p.Code == kcp.CodeKeyMismatch:
			e.raise(p.Key, kcp.CodeKeyMismatch, "%s", p.Reason)
		case c.Hidden[p.Key]:
			e.raise(p.Key, extractCodeOf(p), "it tells what the logical cluster needs: %s", p.Reason)
		case workspaces[p.Key]:
			e.raise(p.Key, extractCodeOf(p), "its logical cluster, which --with-children extracts too, "+
				"is unknown: %s", p.Reason)
		default:
			e.note(p.Key, extractCodeOf(p), "it is taken as it is stored: %s", p.Reason)
		}
	}
	switch owner := c.Owner; { // a parent that is not in the file
	case c.System || owner != nil && e.file.Lives(owner.Cluster):
	case owner == nil:
		e.raiseUntold(key, c.Name)
	default:
		e.raiseUnseen(key, c.Name, owner)
	}
}

// workspaceKeys returns the keys of the Workspaces of a logical cluster whose children are included
// too.
func (e *extraction) workspaceKeys(c *kcp.Cluster) map[string]bool {
	keys := map[string]bool{}
	if e.WithChildren && len(c.Problems) > 0 {
		for _, w := range c.Workspaces {
			keys[w.Key] = true
		}
	}
	return keys
}

// checkChildren reports logical clusters of Workspaces that the archive does not include.
func (e *extraction) checkChildren(c *kcp.Cluster) {
	lying := workspacesIn(c)
	for _, child := range e.shard.Children(c.Name) {
		if e.chosen[child.Name] != nil {
			continue
		}
		reason := staysWithout(child)
		if lying[child.Owner.Name] {
			reason = fmt.Sprintf("%q is not in the archive, and its Workspace %q is", child.Name, child.Owner.Name)
		}
		e.raise(e.keyOf(child.Name), codeChildrenStay, "%s; --with-children extracts it too", reason)
	}
	for _, w := range c.Workspaces {
		child := e.shard.Cluster(w.Cluster)
		switch {
		case w.Cluster == "" || e.chosen[w.Cluster] != nil || child != nil && child.Owner != nil &&
			child.Owner.Cluster == c.Name:
		case child == nil:
			e.raise(w.Key, codeChildElsewhere, "%q, behind Workspace %q in %q, %s", w.Cluster, w.Name, c.Name,
				elsewhere(w))
		case e.shard.Unread(child).Code != nil && !e.WithChildren:
			e.raise(e.keyOf(child.Name), codeChildrenStay,
				"%q is not in the archive: only Workspace %q in %q says that it belongs there, its LogicalCluster "+
					"does not tell", child.Name, w.Name, c.Name)
		case e.shard.Unread(child).Code != nil:
			p := e.shard.Unread(child)
			e.raise(p.Key, extractCodeOf(p), "it tells whether %q belongs to Workspace %q in %q: %s", child.Name,
				w.Name, c.Name, p.Reason)
		default:
			e.raise(w.Key, codeChildElsewhere,
				"%q lives here, but says that it does not belong to Workspace %q in %q, which names it", w.Cluster,
				w.Name, c.Name)
		}
	}
}

// checkUnreadable reports unreadable LogicalClusters, perhaps of children, that no Workspace names.
func (e *extraction) checkUnreadable() {
	if !e.WithChildren || e.shard.Unread(e.chosen[e.Name]).Code != nil { // an unreadable root refuses the run
		return
	}
	named := map[string]bool{}
	for _, c := range e.order {
		for _, w := range c.Workspaces {
			named[w.Cluster] = true // reported already
		}
	}
	for _, c := range e.shard.Clusters {
		if p := e.shard.Unread(c); p.Code != nil && !c.System && e.chosen[c.Name] == nil && !named[c.Name] {
			e.note(p.Key, extractCodeOf(p), "the parent of %q is unknown; it is not in the archive: %s", c.Name,
				p.Reason)
		}
	}
}
