package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// ExtractOptions say what Extract reads and writes.
type Options struct {
	Name         string // of the logical cluster
	In, Out      string // paths of the shard and of the archive, which must not exist, also for a dry run
	AsShard      string // the shard's own name; "": what it calls itself
	WithChildren bool   // take along the logical clusters below it that live on the same shard, however deep
	DryRun       bool
	Prefixes     []string       // of the shard, where the file holds several
	Opener       inspect.Opener // opens what is encrypted at rest; nil where nothing is known of it
	Allow        []string       // codes of problems that are not to refuse
	MaxExpand    int64          // of a compressed shard, as that of snapshot.Config; it is expanded in the folder of Out
	// Progress, where it is set, is called with the name of each stage as it begins.
	Progress func(stage string)
}

// ExtractReport is what Extract found and did. Output is the archive.
type Report struct {
	*transform.Report
	survey.Receipts
	Manifest *archive.Manifest // of the archive, also of one that a dry run did not write
}

// The sections of the report. The command prints them, from the manifest.
type (
	receipts survey.Receipts
	appendix struct {
		Manifest *archive.Manifest `json:"manifest,omitempty"`
	}
)

func (receipts) Tables(transform.Outcome) []transform.Table { return nil }
func (appendix) Tables(transform.Outcome) []transform.Table { return nil }

// Extract writes an archive of one logical cluster, and of its children where that is asked for. Values are those of the shard, byte
// for byte, encrypted or not. The report is never nil; whatever the error, Out then does not exist. Errors are
// transform.ErrRefused, ErrArchive, ErrShardUnknown, ErrSplit, archive.ErrUnfit, those of clusters.File.Shard and clusters.Shard.Find,
// and those of reading the shard and of writing, among them archive.ErrDamaged and snapshot.ErrVerify where what was written is not
// what was to be. The report of a refusal has what would have been taken, but for the manifest.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Report: transform.NewReport("cluster extract")}
	r.Input.Path = o.In
	err := o.run(ctx, r)
	switch {
	case errors.Is(err, transform.ErrRefused):
		r.Outcome, r.Manifest = transform.Refused, nil
	case err != nil:
		r.Outcome, r.Error, r.Output, r.Manifest = transform.Failed, err.Error(), nil, nil
	}
	r.Sections, r.Appendix = []transform.Section{receipts(r.Receipts)}, appendix{r.Manifest}
	return r, err
}

func (o Options) run(ctx context.Context, r *Report) error {
	if err := transform.CheckPaths(o.In, o.Out); err != nil {
		return err
	}
	o.stage("read")
	src, err := snapshot.Open(ctx, o.In, snapshot.Config{MaxExpand: o.MaxExpand, ScratchDir: filepath.Dir(o.Out)})
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	e := &extraction{Options: o, src: src, report: r, chosen: map[string]*clusters.Cluster{}, odd: map[string][]string{}}
	found := src.Guard(func() error { return e.find(ctx) })
	info, err := transform.InfoOf(ctx, src) // a wrong digest explains whatever else was found
	if err == nil {
		r.Input, err = info, found
	}
	if err != nil {
		return err
	}
	e.judge()
	return src.Guard(func() error { return e.take(ctx) })
}

// take counts what the archive takes, and writes it. All that a run would stumble over a dry run finds too.
func (e *extraction) take(ctx context.Context) error {
	e.stage("count")
	if err := e.count(ctx); err != nil {
		return err
	}
	e.steps()
	if _, refusing := e.report.Errors(); refusing > 0 {
		return fmt.Errorf("%w: problems: %d", transform.ErrRefused, refusing)
	}
	err := e.src.Sound(ctx) // what a damaged shard would pass off as its records is not to be carried on
	if err == nil {
		_, err = e.src.Digest(ctx)
	}
	if err != nil {
		return err
	}
	if e.notes, err = e.report.Manifest.Notes(); err != nil {
		return fmt.Errorf("%s: %w", e.In, err)
	}
	if e.DryRun {
		e.report.Outcome = transform.Planned
		return nil
	}
	e.stage("write")
	return e.write(ctx)
}

func (o Options) stage(name string) {
	if o.Progress != nil {
		o.Progress(name)
	}
}

// extraction is one run of Extract.
type extraction struct {
	Options
	src    *snapshot.Snapshot
	report *Report
	file   *clusters.File
	index  *survey.Index
	shard  *clusters.Shard
	// shardName is that of shard; "" where nobody knows.
	shardName string
	chosen    map[string]*clusters.Cluster // that the archive takes, by name
	order     []string                     // their names, parents before their children
	// taken are the places of the archive's records; all but the shard's own are copies in a cache, which it does not take.
	taken  *survey.Selection
	needs  map[string]need     // definitions that the archive takes, by their keys
	leases map[int64]int64     // TTL in seconds by id, of those that an archive can have
	odd    map[string][]string // by key, what of a record its manifest does not say
	notes  map[string][]byte   // of the archive
}

// find reads the shard and chooses the logical clusters.
func (e *extraction) find(ctx context.Context) (err error) {
	reader := inspect.NewReader(e.src, e.Opener, e.Prefixes...)
	if err := archive.Refuse(ctx, e.src); err != nil { // what it would say of its origin would not be true of any shard
		return fmt.Errorf("%s: %w", e.In, err)
	}
	if e.file, err = clusters.ReadChecked(ctx, reader); err != nil {
		return err
	}
	if e.shard, err = e.file.Shard(e.Prefixes); err != nil {
		return fmt.Errorf("%s: %w", e.In, err)
	}
	root, err := e.shard.Find(e.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", e.In, err)
	}
	layouts, err := reader.Layouts(ctx)
	if err != nil {
		return err
	}
	if err := survey.CheckStorages(e.file); err != nil {
		return fmt.Errorf("%s: %w", e.In, err)
	}
	e.index, e.taken = survey.NewIndex(e.file), survey.NewSelection(layouts)
	e.shardName = cmp.Or(e.AsShard, e.shard.Name)
	if err := e.choose(root); err != nil {
		return fmt.Errorf("%s: %w", e.In, err)
	}
	return e.findLeases(ctx)
}

// maxTTL is the most that a server grants, in seconds (etcd server/lease/lessor.go, MaxLeaseTTL).
const maxTTL = 9_000_000_000

// findLeases leaves out leases that no server grants: a TTL of theirs could not be kept.
func (e *extraction) findLeases(ctx context.Context) error {
	all, err := e.src.Leases(ctx)
	e.leases = map[int64]int64{}
	for id, ttl := range all {
		if ttl > 0 && ttl <= maxTTL {
			e.leases[id] = ttl
		}
	}
	return err
}

// choose takes a logical cluster, and where that is asked for those whose LogicalClusters say that they belong to it.
func (e *extraction) choose(c *clusters.Cluster) error {
	e.chosen[c.Name] = c
	e.order = append(e.order, c.Name)
	e.taken.Add(survey.Place{Prefix: e.shard.Prefix, Cluster: c.Name})
	if err := e.findCopies(c.Name); err != nil || !e.WithChildren {
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

// findCopies finds what a purge would take out of the caches of the same file: it is no part of the rest.
func (e *extraction) findCopies(name string) error {
	for _, copied := range e.index.Copies[name] {
		switch {
		case e.shardName == "":
			return fmt.Errorf("%w: the cache below %q has copies of %q, from shard %q among others; name this one with --as-shard",
				survey.ErrShardUnknown, copied.Prefix, name, copied.Shard)
		case copied.Shard == e.shardName:
			e.taken.Add(copied.Place())
		}
	}
	return nil
}

func (e *extraction) allowed(code string) bool { return slices.Contains(e.Allow, code) }
