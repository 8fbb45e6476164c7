package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// checkOrigin finds what is left of the logical clusters, and changes to all other records.
func (c *checker) checkOrigin() {
	theirs := survey.NewSelection(c.origin.Layouts)
	for name := range c.archive.moved {
		theirs.Places[survey.Place{Prefix: c.from.Prefix, Cluster: name}] = true
		for _, cache := range c.origin.Caches {
			theirs.Places[survey.Place{Prefix: cache.Prefix, Shard: c.From, Cluster: name}] = true
		}
	}
	c.addArrived(theirs)
	left, err := theirs.Split(c.Ctx, c.origin.Reader)
	if c.Failed(err) {
		return
	}
	for _, s := range left.Keys {
		if s.Prefix == c.from.Prefix {
			c.found(codeStillAtOrigin, c.origin.file, s.Key, "it is of logical cluster %q, which was moved", s.Cluster)
		}
	}
	rest := left.Rest.Sum()
	c.checked[QuestionDoubled] += rest.Keys + len(left.Keys)
	c.checked[QuestionTouched] += rest.Keys
	c.checkHistory(int64(len(theirs.Created)))
	c.checkGiven(theirs)
	deleted := c.checkPaths()
	if rest != c.archive.manifest.Origin.Rest {
		c.nameCulprits(theirs, deleted)
	}
}

// addArrived excludes the copies that the destination got in a cache of the origin's file.
func (c *checker) addArrived(theirs *survey.Selection) {
	for _, copied := range c.origin.Copies() {
		if !c.archive.moved[copied.Cluster] || copied.Shard != c.To {
			continue
		}
		for _, key := range copied.Keys {
			if rec := c.get(c.origin.file, []byte(key)); rec != nil && rec.CreateRevision > c.archive.manifest.Origin.Revision {
				theirs.Created[key] = true
			}
		}
	}
}

// checkGiven finds out whether the archive was made of the given origin, which may be packed
// differently.
func (c *checker) checkGiven(theirs *survey.Selection) {
	given := c.origin.before
	if given == nil {
		return
	}
	was, err := theirs.Split(c.Ctx, given.Reader)
	if c.Failed(err) {
		return
	}
	if was.Rest.Sum() != c.archive.manifest.Origin.Rest {
		c.found(codeOtherOrigin, given, "", "the archive was made of another file, with SHA-256 %s", c.archive.manifest.Origin.SHA256)
	}
	c.compareGiven(given, was.Keys)
}

// nameCulprits reports the records by which the rest of the origin differs: by comparison with the
// input of the purge, or those written since. explained: keys under a path are gone, and named.
func (c *checker) nameCulprits(theirs *survey.Selection, explained bool) {
	before := len(c.Findings)
	if c.origin.before != nil {
		skip := func(key []byte) bool { return theirs.Purged(key) || c.purgedPath(key) }
		c.compareRecords(codeOriginTouched, c.origin, skip, nil)
	}
	since := c.archive.manifest.Origin.Revision
	for rec := range survey.Each(&c.Reading, c.origin.Snapshot().Records(c.Ctx)) {
		if rec.Revision.Main <= since || len(rec.Key) == 0 || rec.Tombstone && theirs.Has(rec.Key) || theirs.Created[string(rec.Key)] ||
			c.purgedPath(rec.Key) {
			continue
		}
		what := "changed"
		switch {
		case rec.Tombstone:
			what = "deleted"
		case rec.CreateRevision > since:
			what = "created"
		}
		c.found(codeOriginTouched, c.origin.file, string(rec.Key), "it was %s at revision %s; the archive was made at %d", what, rec.Revision, since)
	}
	switch {
	case len(c.Findings) > before || explained:
	case c.archive.manifest.Origin.Shard == "" && len(c.origin.Caches) > 0:
		c.unchecked(QuestionTouched, c.origin.file, "", "it has a cache, and the archive does not say which copies in it were the origin's")
	default:
		c.found(codeOtherOrigin, c.origin.file, "", "its other records are not those that the archive was made beside, at revision %d of a file with "+
			"SHA-256 %s; --origin FILE names them", since, c.archive.manifest.Origin.SHA256)
	}
}

// checkDoubled finds logical clusters that live on both sides, and stale copies in caches.
func (c *checker) checkDoubled() {
	for _, is := range c.from.Clusters {
		if (!is.System || c.archive.moved[is.Name]) && c.to.Cluster(is.Name) != nil {
			c.found(codeLivesTwice, c.origin.file, "", "logical cluster %q (%s) lives here and in %s: two shards would serve it",
				is.Name, is.Path, c.destination.path)
		}
	}
	if len(c.withCaches()) == 0 {
		c.note("no cache was given (--cache FILE): whether the cache server still has copies from the origin was not checked")
	}
	for _, f := range c.withCaches() {
		for _, copied := range f.Copies() {
			if c.archive.moved[copied.Cluster] {
				c.checkStale(f.file, copied)
			}
		}
	}
}

func (c *checker) withCaches() []*output {
	return slices.DeleteFunc(slices.Clone(c.outputs), func(o *output) bool { return len(o.Caches) == 0 })
}

// isStale tells whether a move leaves a copy by shard stale: only the destination writes copies of
// moved logical clusters from now on. Those of system:* are on each shard.
func (c *checker) isStale(shard, cluster string) bool {
	return c.archive.moved[cluster] && (shard == c.From || c.To != "" && shard != c.To && !strings.HasPrefix(cluster, "system:"))
}

// isArrivedCopy tells whether a key is that of a copy in a cache under the destination's name.
func (c *checker) isArrivedCopy(key keys.Key) bool {
	return key.Shard != "" && key.Shard == c.To && c.archive.moved[key.Cluster]
}

func (c *checker) checkStale(in *file, copied *clusters.Copy) {
	c.checked[QuestionDoubled] += len(copied.Keys)
	switch everywhere := strings.HasPrefix(copied.Cluster, "system:"); {
	case c.isStale(copied.Shard, copied.Cluster):
		for _, key := range copied.Keys {
			c.found(codeStaleCopy, in, key, "a copy of %q as shard %q wrote it, where it does not live any more", copied.Cluster, copied.Shard)
		}
	case everywhere && c.From != "", copied.Shard == c.To:
	default:
		c.unchecked(QuestionDoubled, in, "", fmt.Sprintf("it has copies of %q as shard %q wrote them, and nothing says what both sides are called; "+
			"--from-shard and --as-shard name them", copied.Cluster, copied.Shard))
	}
}

// past holds the records of the moved logical clusters in the origin's file, dead or alive, by key
// behind the storage prefix.
type past struct {
	*checker
	had     map[string]*snapshot.Record // what lived when the archive was made
	written map[string]*snapshot.Record // the last that was written since
	live    map[string]bool
}

// checkHistory finds out whether the archive lacks later writes. The tombstones of a purge leave
// the history in the file; without it (--scrub), only the input of the purge tells. arrived counts
// the copies that a cache of the file got.
func (c *checker) checkHistory(arrived int64) {
	p := past{c, map[string]*snapshot.Record{}, map[string]*snapshot.Record{}, map[string]bool{}}
	for rec := range survey.Each(&c.Reading, c.origin.Snapshot().Scan(c.Ctx)) {
		p.add(rec)
	}
	made := c.archive.manifest.Origin.Revision
	for key, rec := range p.written { // findings are sorted
		if !p.live[key] { // a live one is found as such
			c.found(codeArchiveOutdated, c.origin.file, string(rec.Key),
				"it was written at revision %s and deleted since; the archive was made at %d, and lacks that", rec.Revision, made)
		}
	}
	for key, rec := range p.had {
		was := c.archive.records[key]
		switch {
		case p.live[key] || p.written[key] != nil: // which is found above
		case was == nil:
			c.found(codeArchiveOutdated, c.origin.file, string(rec.Key), "it lived at revision %d, at which the archive was made; the archive does not have it",
				made)
		case !was.is(rec):
			c.found(codeArchiveOutdated, c.origin.file, string(rec.Key),
				"at revision %d, at which the archive was made, it was of revision %d; the archive has another, of %d", made, rec.ModRevision, was.ModRevision)
		}
	}
	p.checkMissing(arrived)
}

func (p *past) add(rec snapshot.Scanned) {
	at, _, err := p.origin.Layouts.Parse(rec.Key)
	if err != nil || at.Shard != "" || !p.archive.moved[at.Cluster] {
		return
	}
	if at.Prefix != p.from.Prefix {
		if rec.Live {
			p.found(codeElsewhere, p.origin.file, string(rec.Key), "it lies below the prefix %q, and %q was moved away from below %q", at.Prefix, at.Cluster,
				p.from.Prefix)
		}
		return
	}
	key, kept := string(rec.Key[len(p.from.Prefix):]), *rec.Record // which is the next one's, too
	switch since := p.archive.manifest.Origin.Revision; {
	case rec.Live:
		p.live[key] = true
		p.had[key] = &kept
	case rec.Revision.Main <= since && rec.Tombstone:
		delete(p.had, key)
	case rec.Revision.Main <= since:
		p.had[key] = &kept
	case !rec.Tombstone:
		p.written[key] = &kept
	}
}

// checkMissing checks a file without that history by its revision: a scrubbed file ends one above
// its input, and one more for each copy that moved in its own cache.
func (p *past) checkMissing(arrived int64) {
	missing := 0
	for key, was := range p.archive.records {
		if !was.definition && p.had[key] == nil && p.written[key] == nil {
			missing++
		}
	}
	if missing == 0 {
		return
	}
	is, err := p.origin.Snapshot().Revision(p.Ctx)
	p.Failed(err)
	was, of := p.archive.manifest.Origin.Revision, "the shard that the archive was made of"
	if given := p.origin.before; given != nil {
		of = given.path
		was, err = given.Snapshot().Revision(p.Ctx)
		p.Failed(err)
	}
	knows := fmt.Sprintf("it knows nothing any more of %s of the archive (kcp purge --scrub)", survey.Counted(missing, "record"))
	switch {
	case is != was+1+arrived:
		p.unchecked(QuestionLost, p.origin.file, "", fmt.Sprintf(
			"%s; its revision is %d, so that %s, at %d, is not what was purged last, and nobody can tell whether those were the last", knows, is, of, was))
	case p.origin.before == nil:
		p.note("%s: %s; that those were the last is told by its revision, %d, alone; --origin FILE, the input of the purge, compares them", p.origin.path,
			knows, is)
	}
}

// compareGiven compares the logical clusters in the given origin with the archive. theirs are their
// keys in it, and those of their copies.
func (c *checker) compareGiven(given *file, theirs []survey.Selected) {
	there := map[string]bool{}
	for _, s := range theirs {
		if s.Prefix != c.from.Prefix {
			continue
		}
		rec := c.get(given, []byte(s.Key))
		if rec == nil {
			return
		}
		key := s.Key[len(c.from.Prefix):]
		there[key] = true
		switch was := c.archive.records[key]; {
		case was == nil:
			c.found(codeArchiveOutdated, given, s.Key, "the archive does not have it")
		case !was.is(rec) || c.archive.leases[was.Lease] != given.leases[rec.Lease]:
			c.found(codeArchiveOutdated, given, s.Key, "the archive has another, of revision %d; here it is of %d", was.ModRevision, rec.ModRevision)
		}
	}
	for key, was := range c.archive.sorted() {
		if !was.definition && !there[key] {
			c.found(codeArchiveOutdated, given, c.from.Prefix+key, "the archive has it; here it is not")
		}
	}
}

// is tells whether a record of the origin is this one.
func (k *kept) is(rec *snapshot.Record) bool {
	return k.ModRevision == rec.ModRevision && bytes.Equal(k.Stored, rec.Value)
}
