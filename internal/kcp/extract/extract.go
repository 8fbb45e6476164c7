package extract

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strconv"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Extract writes an archive of one logical cluster, and of its children with WithChildren. Values
// are those of the shard, byte for byte.
type Extract struct {
	Name         string   // of the logical cluster
	Archive      string   // path of the output, for the steps of the report
	AsShard      string   // the shard's own name; "": what it calls itself
	WithChildren bool     // take along the logical clusters below it that live on the same shard, however deep
	Prefixes     []string // of the shard, where the file holds several
}

// Plan counts the records of the archive. A dry run finds all problems of a run.
func (x *Extract) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Anew: true})
	e := &extraction{
		Extract: x, view: v, src: v.Reader().Snapshot(),
		chosen: map[string]*clusters.Cluster{}, odd: map[string][]string{},
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
	receipts := &survey.Receipts{Untold: true}
	receipts.Receive(m)
	v.Report().Sections = append(v.Report().Sections, receipts)
	if _, refusing := v.Report().Errors(); refusing > 0 {
		return nil
	}
	v.Report().Appendix = &Manifest{m}
	if err := e.src.Sound(ctx); err != nil { // what a damaged shard would pass off as its records is not to be carried on
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
	view      *transform.View
	src       *snapshot.Snapshot
	file      *clusters.File
	index     *survey.Index
	shard     *clusters.Shard
	shardName string
	chosen    map[string]*clusters.Cluster // that the archive takes, by name
	order     []*clusters.Cluster          // the same, parents before their children
	// taken has the places of the archive's records, and of copies in a cache, which the archive
	// does not take.
	taken  *survey.Selection
	needs  map[string]need     // definitions that the archive takes, by their keys
	keys   [][]byte            // of the archive's records, in revision order
	leases map[int64]int64     // TTL in seconds by id, of those that an archive can have
	odd    map[string][]string // by key, what of a record its manifest does not say
}

func (e *extraction) find(ctx context.Context) (err error) {
	reader := e.view.Reader()
	if err := archive.Refuse(ctx, e.src); err != nil { // what it would say of its origin would not be true of any shard
		return err
	}
	if e.file, err = clusters.ReadChecked(ctx, reader); err != nil {
		return err
	}
	if e.shard, err = e.file.Shard(e.Prefixes); err != nil {
		return err
	}
	root, err := e.shard.Find(e.Name)
	if err != nil {
		return err
	}
	e.index, e.taken = survey.NewIndex(e.file), survey.NewSelection(e.file.Layouts)
	e.shardName = cmp.Or(e.AsShard, e.shard.Name)
	if err := e.choose(root); err != nil {
		return err
	}
	return e.findLeases(ctx)
}

// maxTTL is the longest lease that a server grants, in seconds (etcd server/lease/lessor.go,
// MaxLeaseTTL).
const maxTTL = 9_000_000_000

// findLeases leaves out leases with a TTL that no server grants.
func (e *extraction) findLeases(ctx context.Context) error {
	all, err := e.src.Leases(ctx)
	e.leases = maps.Clone(all)
	maps.DeleteFunc(e.leases, func(_, ttl int64) bool { return ttl <= 0 || ttl > maxTTL })
	return err
}

// choose takes a logical cluster, and with WithChildren all that belong to it.
func (e *extraction) choose(c *clusters.Cluster) error {
	e.chosen[c.Name] = c
	e.order = append(e.order, c)
	e.taken.Places[survey.Place{Prefix: e.shard.Prefix, Cluster: c.Name}] = true
	if _, err := e.index.AddCopies(e.taken, c.Name, e.shardName); err != nil || !e.WithChildren { // which a purge would take: they are no rest
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
	for _, l := range m.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		if err != nil {
			return err
		}
		if l.TTL > 0 {
			content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: l.TTL})
		}
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
	r.AddStep("keep the archive as the snapshot is kept: it has the Secrets of the cluster, as they are stored")
	for _, x := range m.Encryption {
		r.AddStep("%s encrypted by %s: the API servers of the destination need that key, or the import an --encryption-config",
			survey.Counted(x.Keys, "value"), x.Name)
	}
	if n := len(m.Missing); n > 0 {
		r.AddStep("%s not there; the destination has to have what is missing", survey.Counted(n, "bound definition"))
	}
	r.AddStep("to move it, stop all front-proxies first, then kcp of both shards, and extract again from a snapshot of after that")
	r.AddStep("take it in elsewhere: etcdshift kcp import %s DESTINATION DESTINATION-OUT", out)
	r.AddStep("take it out here: etcdshift kcp purge %s %s ORIGIN-OUT%s --to-shard NEW-SHARD", name, in, also)
	survey.StepToMoveCopies(r, m.Names(), m.Origin.Shard, "")
	survey.StepToVerify(r, e.Archive, "DESTINATION-OUT", true)
	survey.StepToStart(r)
}

// Manifest is the section of a report with the manifest of the archive, also of a dry run.
type Manifest struct {
	*archive.Manifest `json:"manifest,omitempty"`
}

// Tables shows the content of the archive and the things that it relies on.
func (m *Manifest) Tables(transform.Outcome) (tables []transform.Table) {
	for _, c := range m.Clusters {
		t := transform.Table{
			Title:  fmt.Sprintf("logical cluster %s (%s)", c.Name, c.Path),
			Header: []any{"RESOURCE", "KEYS", "BYTES", "SHA256"},
			Totals: [][]any{{"all of it", c.Keys, c.Bytes, c.SHA256}},
		}
		for _, r := range c.Resources {
			name := r.Resource
			if r.Identity != "" {
				name += " of " + r.Identity[:8]
			}
			t.Rows = append(t.Rows, []any{name, r.Keys, r.Bytes, r.SHA256})
		}
		tables = append(tables, t)
	}
	sum := func(what string, s archive.Sum) []any {
		return []any{what, fmt.Sprintf("%s, %d bytes", survey.Counted(s.Keys, "key"), s.Bytes), s.SHA256}
	}
	return append(tables,
		transform.Table{Rows: [][]any{sum("whole archive", m.Total), sum("rest of the shard", m.Origin.Rest)}},
		transform.Table{Rows: m.reliance()})
}

// reliance lists the things that the destination of the archive must have.
func (m *Manifest) reliance() (rows [][]any) {
	row := func(cells ...any) { rows = append(rows, cells) }
	for _, d := range m.Definitions {
		row("definition", d.Resource, d.UID, "in the archive")
	}
	for _, d := range m.Missing {
		row("definition", d.Resource, d.UID, "missing")
	}
	for _, i := range m.Identities {
		what := "relied on"
		if i.Own {
			what = "its own"
		}
		for _, e := range i.Exports {
			row("identity", e.Name+" of "+cmp.Or(e.Path, e.Cluster), i.Hash, what)
		}
		if len(i.Exports) == 0 {
			row("identity", "no binding tells whose", i.Hash, what)
		}
	}
	for _, l := range m.Leases {
		row("lease", fmt.Sprintf("%d s", l.TTL), l.ID, "of "+survey.Counted(l.Keys, "key"))
	}
	for _, e := range m.Encryption {
		row("encrypted by", e.Name, survey.Counted(e.Keys, "value"))
	}
	return rows
}
