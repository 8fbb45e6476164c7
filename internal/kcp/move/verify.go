package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Move is a move of logical clusters between two shards, as files. The snapshots must stay open
// during the check.
type Move struct {
	Archive        *inspect.Reader
	OriginOut      *inspect.Reader   // the output of kcp purge
	DestinationOut *inspect.Reader   // the output of kcp import
	Origin         *inspect.Reader   // the input of kcp purge; nil for none
	Destination    *inspect.Reader   // the input of kcp import; nil for none
	Caches         []*inspect.Reader // outputs of kcp purge for cache servers
	CachesBefore   []*inspect.Reader // inputs of the purges, in the order of Caches; may be shorter, and have nil
	Prefixes       []string          // of the destination's storage, if its file has several
	FromShard      string            // the origin's name, if not in the archive
	AsShard        string            // the destination's name, if not in its file
	Ignore         []string          // codes to omit; see Ignorable
	// Configured means that an encryption configuration of the destination is given, and has to
	// decrypt every moved value.
	Configured bool
}

// ErrFromShard is returned for an archive of another shard than Move.FromShard.
var ErrFromShard = errors.New("the archive is of another shard")

// errStop ends a check if no further comparison is possible.
var errStop = errors.New("nothing more can be checked")

// Verify checks a move. Findings, including damaged files, are in the Verdict. An error means that
// a file is not an archive or a shard of kcp, or cannot be read.
//
// Memory grows with the records of the archive, without their values, and with the findings.
func (m Move) Verify(ctx context.Context) (*Verdict, error) {
	f := newFindings()
	c, err := m.read(ctx, f)
	if err == nil {
		err = c.check()
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return f.finish(m.Ignore, c != nil), nil
}

// Damaged returns the verdict for a file that cannot be opened because of damage; err is the
// reason.
func Damaged(path string, err error) *Verdict {
	f := newFindings()
	f.checked[QuestionDamaged] = 1
	(&file{findings: f, path: path}).found(codeDamaged, "", "%v", err)
	return f.finish(nil, false)
}

func (c *checker) check() error {
	for _, step := range []func() error{
		c.checkDestination, c.checkDefinitions, c.checkIdentities, c.checkServing, c.checkOwners,
		c.checkOrigin, c.checkDoubled, c.checkCopies, c.checkRests, c.ctx.Err,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// get returns the live record of a key; nil for none.
func (f *file) get(ctx context.Context, key []byte) (*snapshot.Record, error) {
	return f.Snapshot().Get(ctx, key)
}

// checker compares the files of one Move.
type checker struct {
	*findings
	ctx         context.Context
	configured  bool // see Move
	archive     *archived
	origin      *output
	destination *output
	outputs     []*output // of both shards and of separate caches
	imported    int64     // revision of the first imported record; 0 until checkDestination finds the record
}

type file struct {
	*inspect.Reader
	*findings // shared by all files
	path      string
	digest    snapshot.Digest
	leases    map[int64]int64 // TTL in seconds, by id
}

// output is the output of a command: of the origin, the destination, or a cache.
type output struct {
	*file
	*kcp.File
	shard  *kcp.Shard // nil for a cache
	before *file      // the input of the command; nil if not given
}

type archived struct {
	*file
	manifest   *archive.Manifest
	shard      *kcp.Shard
	moved      map[string]bool    // the logical clusters, by name
	paths      map[string]string  // names of the logical clusters, by path
	workspaces map[[2]string]bool // Workspaces of moved, by logical cluster and name
	records    map[string]*kept   // by key without the storage prefix
}

// kept is a record of the archive, as stored.
type kept struct {
	*inspect.Entry
	key        keys.Key
	definition bool
	seen       bool // found on the destination
	clear      bool // plaintext on the destination, and no configuration explains it
}

func (a *archived) sorted() iter.Seq2[string, *kept] {
	return func(yield func(string, *kept) bool) {
		for _, key := range slices.Sorted(maps.Keys(a.records)) {
			if !yield(key, a.records[key]) {
				return
			}
		}
	}
}

// read opens the files, checks each file, and finds the storages of the move. The error is errStop
// if the archive or a snapshot is damaged.
func (m Move) read(ctx context.Context, f *findings) (*checker, error) {
	a, err := f.readArchive(ctx, m.Archive)
	if err != nil {
		return nil, err
	}
	c := &checker{findings: f, ctx: ctx, configured: m.Configured, archive: a}
	if c.outputs, err = m.openOutputs(ctx, f); err != nil {
		return nil, err
	}
	c.origin, c.destination = c.outputs[0], c.outputs[1]
	c.checkSame()
	if says := a.manifest.Origin.Shard; m.FromShard != "" && says != "" && says != m.FromShard {
		return nil, fmt.Errorf("%s: %w: of %q, and not of %q", a.path, ErrFromShard, says, m.FromShard)
	}
	for _, out := range c.outputs {
		if out.File, err = kcp.Read(ctx, out.Reader); err != nil {
			return nil, err
		}
	}
	for _, out := range c.outputs[2:] {
		if _, err := out.Cache(nil); len(out.Caches) == 0 {
			return nil, fmt.Errorf("%s: %w", out.path, err)
		}
		out.Shards = nil // a shard in the cache's file is not part of the move
	}
	f.From, err = c.origin.findShard([]string{a.manifest.Origin.Prefix}, m.FromShard, a.manifest.Origin.Shard)
	if err == nil {
		f.To, err = c.destination.findShard(m.Prefixes, m.AsShard)
	}
	return c, err
}

// findShard finds the shard of the file, which must be whole, and returns the first name in names,
// or else the shard's own name.
func (o *output) findShard(prefixes []string, names ...string) (name string, err error) {
	s, err := o.Shard(prefixes)
	if err == nil && s.Partial {
		err = fmt.Errorf("%w that is whole: below %q there is no LogicalCluster of %s",
			kcp.ErrNoShard, s.Prefix, kcp.SystemShard)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", o.path, err)
	}
	o.shard, name = s, cmp.Or(append(names, s.Name)...)
	if s.Name != "" && s.Name != name {
		o.note("%s says of itself that it is shard %q, and is checked as %q", o.path, s.Name, name)
	}
	return name, nil
}

// readArchive checks the archive and keeps its content.
func (f *findings) readArchive(ctx context.Context, r *inspect.Reader) (*archived, error) {
	s := r.Snapshot()
	a := &archived{file: &file{Reader: r, findings: f, path: s.Path()}, moved: map[string]bool{},
		paths:      map[string]string{},
		workspaces: map[[2]string]bool{}, records: map[string]*kept{}}
	f.checked[QuestionDamaged]++
	var err error
	if a.manifest, err = archive.OpenChecked(ctx, s); err == nil {
		err = a.read(ctx)
	}
	if isDamage(err) {
		a.found(codeArchiveDamaged, "", "%v", err)
		return nil, errStop
	}
	if err != nil {
		return nil, err
	}
	for _, c := range a.manifest.Clusters {
		a.moved[c.Name] = true
		if c.Path != "" {
			a.paths[c.Path] = c.Name
		}
		a.workspaces[[2]string{c.Owner.Cluster, c.Owner.Name}] = true
		f.Clusters = append(f.Clusters, Moved{c.Name, c.Path, c.Keys})
	}
	file, err := kcp.Read(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.shard, err = file.Shard([]string{a.manifest.Origin.Prefix}); err != nil {
		return nil, fmt.Errorf("%s: %w", a.path, err)
	}
	return a, a.readRecords(ctx)
}

func (a *archived) readRecords(ctx context.Context) error {
	for e, err := range a.Raw(ctx, nil) {
		if err != nil {
			return err
		}
		key, err := e.ParseKey()
		if err != nil {
			return err // OpenChecked has parsed the key before
		}
		a.records[string(e.Key[len(a.manifest.Origin.Prefix):])] = &kept{Entry: &e, key: key}
	}
	for _, d := range a.manifest.Definitions {
		a.records[d.Key].definition = true
	}
	return nil
}

func (m Move) openOutputs(ctx context.Context, f *findings) (all []*output, err error) {
	before := slices.Concat([]*inspect.Reader{m.Origin, m.Destination}, m.CachesBefore,
		make([]*inspect.Reader, len(m.Caches)))
	for n, r := range slices.Concat([]*inspect.Reader{m.OriginOut, m.DestinationOut}, m.Caches) {
		out := &output{}
		if out.file, err = f.open(ctx, r); err != nil {
			return nil, err
		}
		if before[n] != nil {
			if out.before, err = f.open(ctx, before[n]); err != nil {
				return nil, err
			}
		}
		all = append(all, out)
	}
	if len(f.Findings) > 0 {
		return nil, errStop
	}
	return all, nil
}

// open opens a snapshot. Damage is a finding.
func (f *findings) open(ctx context.Context, r *inspect.Reader) (*file, error) {
	s := r.Snapshot()
	in := &file{Reader: r, findings: f, path: s.Path()}
	if err := archive.Refuse(ctx, s); err != nil {
		return nil, fmt.Errorf("%s: %w", in.path, err)
	}
	f.checked[QuestionDamaged]++
	sound := len(f.Findings)
	for err := range snapshot.Verify(ctx, s) {
		if !isDamage(err) {
			return nil, err
		}
		in.found(codeDamaged, "", "%v", err)
	}
	if len(f.Findings) > sound {
		return in, nil
	}
	return in, in.read(ctx)
}

func (f *file) read(ctx context.Context) (err error) {
	if f.digest, err = f.Snapshot().Digest(ctx); err == nil {
		f.leases, err = f.Snapshot().Leases(ctx)
	}
	return err
}

func isDamage(err error) bool {
	return snapshot.IsDamage(err) || errors.Is(err, archive.ErrDamaged)
}

// checkSame finds an omitted step of the move: the output of the step equals its input.
func (c *checker) checkSame() {
	origin, destination := c.origin, c.destination
	same := func(a, b *file) bool { return a != nil && b != nil && a.digest.Image == b.digest.Image }
	source := func(f *file) bool { return fmt.Sprintf("%x", f.digest.File) == c.archive.manifest.Origin.SHA256 }
	switch {
	case same(origin.file, destination.file):
		destination.found(codeSameFile, "", "it is the same snapshot as %s", origin.path)
	case source(origin.file) || same(origin.file, origin.before):
		origin.found(codeSameFile, "", "it is the snapshot that the archive was made of: nothing was purged")
	case source(destination.file) || same(destination.file, origin.before):
		destination.found(codeSameFile, "", "it is the snapshot that the archive was made of")
	case same(destination.file, destination.before):
		destination.found(codeSameFile, "", "it is the same snapshot as %s: nothing was imported",
			destination.before.path)
	}
}
