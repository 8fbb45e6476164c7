package move

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// departure is the check of the origin's file.
type departure struct {
	*checker
	theirs *Selection // the moved logical clusters and their copies
	made   int64      // the revision of the archive
	// Records of the moved logical clusters, live or deleted, by key without the storage prefix.
	had     map[string]*snapshot.Record // live at the revision of the archive
	written map[string]*snapshot.Record // the last write after this revision
	live    map[string]bool
	deleted bool // a purge deleted keys under the path of a moved logical cluster
}

// checkOrigin finds remaining records of the logical clusters, and changes to all other records.
func (c *checker) checkOrigin() error {
	d := &departure{
		checker: c, theirs: newSelection(c.origin.Layouts), made: c.archive.manifest.Origin.Revision,
		had: map[string]*snapshot.Record{}, written: map[string]*snapshot.Record{}, live: map[string]bool{},
	}
	for name := range c.archive.moved {
		d.theirs.Places[Place{Prefix: c.origin.shard.Prefix, Cluster: name}] = true
		for _, cache := range c.origin.Caches {
			d.theirs.Places[Place{Prefix: cache.Prefix, Shard: c.From, Cluster: name}] = true
		}
	}
	if err := d.addArrived(); err != nil {
		return err
	}
	left, err := d.theirs.Split(c.ctx, c.origin.Reader)
	if err != nil {
		return err
	}
	for _, s := range left.Keys {
		if s.Prefix == c.origin.shard.Prefix {
			c.origin.found(codeStillAtOrigin, s.Key, "it is of logical cluster %q, which was moved", s.Cluster)
		}
	}
	rest := left.Rest.Sum()
	c.checked[QuestionDoubled] += rest.Keys + len(left.Keys)
	c.checked[QuestionTouched] += rest.Keys
	for _, step := range []func() error{d.checkHistory, d.checkGiven, d.checkPaths} {
		if err := step(); err != nil {
			return err
		}
	}
	if rest != c.archive.manifest.Origin.Rest {
		return d.nameCulprits()
	}
	return nil
}

// addArrived excludes the destination's copies in a cache of the origin's file.
func (d *departure) addArrived() error {
	for _, copied := range d.origin.Copies() {
		if !d.archive.moved[copied.Cluster] || copied.Shard != d.To {
			continue
		}
		for _, key := range copied.Keys {
			rec, err := d.origin.file.get(d.ctx, []byte(key))
			if err != nil {
				return err
			}
			if rec != nil && rec.CreateRevision > d.made {
				d.theirs.Created[key] = true
			}
		}
	}
	return nil
}

// checkGiven checks that the archive was extracted from the given origin, which may be compressed
// differently, and compares its logical clusters with the archive.
func (d *departure) checkGiven() error {
	given := d.origin.before
	if given == nil {
		return nil
	}
	was, err := d.theirs.Split(d.ctx, given.Reader)
	if err != nil {
		return err
	}
	if m := d.archive.manifest; was.Rest.Sum() != m.Origin.Rest {
		given.found(codeOtherOrigin, "", "the archive was made of another file, with SHA-256 %s", m.Origin.SHA256)
	}
	there := map[string]bool{}
	for _, s := range was.Keys {
		if s.Prefix != d.origin.shard.Prefix {
			continue
		}
		rec, err := given.get(d.ctx, []byte(s.Key))
		if err != nil {
			return err
		}
		key := s.Key[len(s.Prefix):]
		there[key] = true
		switch was := d.archive.records[key]; {
		case was == nil:
			given.found(codeArchiveOutdated, s.Key, "the archive does not have it")
		case !was.is(rec) || d.archive.leases[was.Lease] != given.leases[rec.Lease]:
			given.found(codeArchiveOutdated, s.Key, "the archive has another, of revision %d; here it is of %d",
				was.ModRevision, rec.ModRevision)
		}
	}
	for key, was := range d.archive.sorted() {
		if !was.definition && !there[key] {
			given.found(codeArchiveOutdated, d.origin.shard.Prefix+key, "the archive has it; here it is not")
		}
	}
	return nil
}

// nameCulprits reports the records by which the rest of the origin differs: by comparison with the
// input of the purge, or else the records written since the archive.
func (d *departure) nameCulprits() error {
	before := len(d.Findings)
	if d.origin.before != nil {
		skip := func(key []byte) bool { return d.theirs.Purged(key) || d.purgedPath(key) }
		if err := d.compareRecords(codeOriginTouched, d.origin, skip, nil); err != nil {
			return err
		}
	}
	for rec, err := range d.origin.Snapshot().Records(d.ctx) {
		if err != nil {
			return err
		}
		if rec.Revision.Main <= d.made || len(rec.Key) == 0 || rec.Tombstone && d.theirs.Has(rec.Key) ||
			d.theirs.Created[string(rec.Key)] || d.purgedPath(rec.Key) {
			continue
		}
		what := "changed"
		switch {
		case rec.Tombstone:
			what = "deleted"
		case rec.CreateRevision > d.made:
			what = "created"
		}
		d.origin.found(codeOriginTouched, string(rec.Key), "it was %s at revision %s; the archive was made at %d",
			what, rec.Revision, d.made)
	}
	switch from := d.archive.manifest.Origin; {
	case len(d.Findings) > before || d.deleted:
	case from.Shard == "" && len(d.origin.Caches) > 0:
		d.origin.unchecked(QuestionTouched, "",
			"it has a cache, and the archive does not say which copies in it were the origin's")
	default:
		d.origin.found(codeOtherOrigin, "", "its other records are not those that the archive was made beside, "+
			"at revision %d of a file with SHA-256 %s; --origin FILE names them", d.made, from.SHA256)
	}
	return nil
}

// checkHistory checks whether the archive lacks later writes. The tombstones of a purge keep the
// history in the file; without history (--scrub), only the input of the purge shows later writes.
func (d *departure) checkHistory() error {
	if err := stream.Each(d.origin.Snapshot().Scan(d.ctx), d.add); err != nil {
		return err
	}
	outdated := func(rec *snapshot.Record, format string, args ...any) { // findings are sorted later
		d.origin.found(codeArchiveOutdated, string(rec.Key), format, args...)
	}
	for key, rec := range d.written {
		if !d.live[key] { // a live key is reported as such
			outdated(rec, "it was written at revision %s and deleted since; the archive was made at %d, and lacks that",
				rec.Revision, d.made)
		}
	}
	for key, rec := range d.had {
		was := d.archive.records[key]
		switch {
		case d.live[key] || d.written[key] != nil: // reported above
		case was == nil:
			outdated(rec, "it lived at revision %d, at which the archive was made; the archive does not have it",
				d.made)
		case !was.is(rec):
			outdated(rec, "at revision %d, at which the archive was made, it was of revision %d; the archive has "+
				"another, of %d", d.made, rec.ModRevision, was.ModRevision)
		}
	}
	return d.checkMissing()
}

func (d *departure) add(rec snapshot.Scanned) error {
	d.checkPath(rec)
	prefix := d.origin.shard.Prefix
	at, _, err := d.origin.Layouts.Parse(rec.Key)
	if err != nil || at.Shard != "" || !d.archive.moved[at.Cluster] {
		return nil
	}
	if at.Prefix != prefix {
		if rec.Live {
			d.origin.found(codeElsewhere, string(rec.Key),
				"it lies below the prefix %q, and %q was moved away from below %q", at.Prefix, at.Cluster, prefix)
		}
		return nil
	}
	key, kept := string(rec.Key[len(prefix):]), *rec.Record // a copy: the next record reuses rec
	switch {
	case rec.Live:
		d.live[key] = true
		d.had[key] = &kept
	case rec.Revision.Main <= d.made && rec.Tombstone:
		delete(d.had, key)
	case rec.Revision.Main <= d.made:
		d.had[key] = &kept
	case !rec.Tombstone:
		d.written[key] = &kept
	}
	return nil
}

// checkMissing checks a file without history by its revision: a scrubbed file ends one revision
// above its input, plus one for each copy that moved in its own cache.
func (d *departure) checkMissing() error {
	missing := 0
	for key, was := range d.archive.records {
		if !was.definition && d.had[key] == nil && d.written[key] == nil {
			missing++
		}
	}
	is, err := d.origin.Snapshot().Revision(d.ctx)
	if err != nil || missing == 0 {
		return err
	}
	was, of := d.made, "the shard of the archive"
	if given := d.origin.before; given != nil {
		of = given.path
		if was, err = given.Snapshot().Revision(d.ctx); err != nil {
			return err
		}
	}
	knows := fmt.Sprintf("it has no history of %s of the archive (kcp purge --scrub)",
		phrase.Count(missing, "record"))
	switch {
	case is != was+1+int64(len(d.theirs.Created)):
		d.origin.unchecked(QuestionLost, "", "%s; its revision is %d: the input of the purge was not %s, at %d, "+
			"and the archive may lack the last records", knows, is, of, was)
	case d.origin.before == nil:
		d.note("%s: %s; only its revision, %d, shows that the archive has the last records; --origin FILE, the "+
			"input of the purge, compares them", d.origin.path, knows, is)
	}
	return nil
}

// is reports whether rec is the same record as k.
func (k *kept) is(rec *snapshot.Record) bool {
	return k.ModRevision == rec.ModRevision && bytes.Equal(k.Stored, rec.Value)
}

// movedBy returns the path and the name of the moved logical cluster for a key under its path; ""
// for other keys. If the path is also the name of a logical cluster, the keys belong to that
// cluster.
func (a *archived) movedBy(in *output, stored []byte) (path, name string) {
	key, _, err := in.Layouts.Parse(stored)
	if err != nil || key.Shard != "" || key.Prefix != in.shard.Prefix || in.shard.Cluster(key.Cluster) != nil ||
		a.moved[key.Cluster] {
		return "", ""
	}
	return key.Cluster, a.paths[key.Cluster]
}

// purgedPath reports whether a key of the origin is under the path of a moved logical cluster: a
// purge deletes the key.
func (d *departure) purgedPath(key []byte) bool {
	_, name := d.archive.movedBy(d.origin, key)
	return name != ""
}

// checkPath finds a key under the path of a moved logical cluster, which the archive lacks.
func (d *departure) checkPath(rec snapshot.Scanned) {
	path, name := d.archive.movedBy(d.origin, rec.Key)
	switch {
	case name == "":
	case rec.Live:
		d.origin.found(codeUnderPath, string(rec.Key), liesUnderPath+": the archive lacks it", path, name)
	case rec.Tombstone && rec.Revision.Main > d.made:
		d.deleted = true
		d.origin.found(codeUnderPath, string(rec.Key),
			"it lay under %q, the path of %q, until revision %s: the archive lacks it", path, name, rec.Revision)
	}
}

const liesUnderPath = "it lies under %q, the path of %q"

// checkPaths finds such keys in the other files, and checks whether a purge deleted some.
func (d *departure) checkPaths() error {
	if given := d.origin.before; given != nil {
		for rec, err := range given.Snapshot().Live(d.ctx, nil) {
			if err != nil {
				return err
			}
			known := d.about[[3]string{codeUnderPath.Name, d.origin.path, string(rec.Key)}]
			if path, name := d.archive.movedBy(d.origin, rec.Key); name != "" && !known {
				d.deleted = true
				given.found(codeUnderPath, string(rec.Key), liesUnderPath+": the archive lacks it", path, name)
			}
		}
	}
	return stream.Each(d.destination.Snapshot().Live(d.ctx, nil), func(rec *snapshot.Record) error {
		if path, name := d.archive.movedBy(d.destination, rec.Key); name != "" {
			d.destination.found(codeUnderPath, string(rec.Key), liesUnderPath, path, name)
		}
		return nil
	})
}

// checkDoubled finds logical clusters that live on both shards, and stale copies in caches.
func (c *checker) checkDoubled() error {
	for _, is := range c.origin.shard.Clusters {
		if (!is.System || c.archive.moved[is.Name]) && c.destination.shard.Cluster(is.Name) != nil {
			c.origin.found(codeLivesTwice, "",
				"logical cluster %q (%s) lives here and in %s: two shards would serve it",
				is.Name, is.Path, c.destination.path)
		}
	}
	if len(withCaches(c.outputs)) == 0 {
		c.note("no cache was given (--cache FILE): whether the cache server still has copies from the origin was not " +
			"checked")
	}
	for _, f := range withCaches(c.outputs) {
		for _, copied := range f.Copies() {
			if c.archive.moved[copied.Cluster] {
				c.checkStale(f.file, copied)
			}
		}
	}
	return nil
}

func withCaches(outputs []*output) []*output {
	return slices.DeleteFunc(slices.Clone(outputs), func(o *output) bool { return len(o.Caches) == 0 })
}

// isStale reports whether a move makes a copy by shard stale: after the move only the destination
// writes copies of moved logical clusters. Logical clusters system:* are on each shard.
func (c *checker) isStale(shard, cluster string) bool {
	return c.archive.moved[cluster] && (shard == c.From || c.To != "" && shard != c.To &&
		!strings.HasPrefix(cluster, "system:"))
}

// isArrivedCopy reports whether a key is a copy in a cache under the destination's name.
func (c *checker) isArrivedCopy(key keys.Key) bool {
	return key.Shard != "" && key.Shard == c.To && c.archive.moved[key.Cluster]
}

func (c *checker) checkStale(in *file, copied *kcp.Copy) {
	c.checked[QuestionDoubled] += len(copied.Keys)
	switch everywhere := strings.HasPrefix(copied.Cluster, "system:"); {
	case c.isStale(copied.Shard, copied.Cluster):
		for _, key := range copied.Keys {
			in.found(codeStaleCopy, key, "a copy of %q as shard %q wrote it, where it does not live any more",
				copied.Cluster, copied.Shard)
		}
	case everywhere && c.From != "", copied.Shard == c.To:
	default:
		in.unchecked(QuestionDoubled, "", "it has copies of %q as shard %q wrote them, and nothing says what both "+
			"sides are called; "+
			"--from-shard and --as-shard name them", copied.Cluster, copied.Shard)
	}
}
