package verify

import (
	"bytes"
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// past holds the records of the moved logical clusters in the origin's file, dead or alive, by key
// behind the storage prefix.
type past struct {
	*checker
	had     map[string]*snapshot.Record // what lived when the archive was made
	written map[string]*snapshot.Record // the last that was written since
	live    map[string]bool
}

// checkHistory finds out whether the archive has the last state of the logical clusters: an archive
// older than the purge lacks later writes. The tombstones of a purge leave the history in the file;
// without it (--scrub), only the input of the purge tells. arrived counts the copies that a cache
// of the file got.
func (c *checker) checkHistory(ctx context.Context, arrived int64) error {
	p := past{c, map[string]*snapshot.Record{}, map[string]*snapshot.Record{}, map[string]bool{}}
	for rec, err := range c.origin.Snapshot().Scan(ctx) {
		if err != nil {
			return err
		}
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
	return p.checkMissing(ctx, arrived)
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

// checkMissing checks a file without the history of the moved logical clusters, by its revision. A
// scrubbed file ends one revision above its input, and one more for each copy that moved in its own
// cache. checkGiven compares the input of the purge itself with the archive.
func (p *past) checkMissing(ctx context.Context, arrived int64) error {
	missing := 0
	for key, was := range p.archive.records {
		if !was.definition && p.had[key] == nil && p.written[key] == nil {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	is, err := p.origin.Snapshot().Revision(ctx)
	if err != nil {
		return err
	}
	was, of := p.archive.manifest.Origin.Revision, "the shard that the archive was made of"
	if given := p.origin.before; given != nil {
		of = given.path
		if was, err = given.Snapshot().Revision(ctx); err != nil {
			return err
		}
	}
	knows := fmt.Sprintf("it knows nothing any more of %s of the archive (cluster purge --scrub)", survey.Counted(missing, "record"))
	switch {
	case is != was+1+arrived:
		p.unchecked(QuestionLost, p.origin.file, "", fmt.Sprintf(
			"%s; its revision is %d, so that %s, at %d, is not what was purged last, and nobody can tell whether those were the last", knows, is, of, was))
	case p.origin.before == nil:
		p.note("%s: %s; that those were the last is told by its revision, %d, alone; --origin FILE, the input of the purge, compares them", p.origin.path,
			knows, is)
	}
	return nil
}

// compareGiven compares the logical clusters in the given origin with the archive. theirs are their
// keys in it, and those of their copies.
func (c *checker) compareGiven(ctx context.Context, given *file, theirs []survey.Selected) error {
	there := map[string]bool{}
	for _, s := range theirs {
		if s.Prefix != c.from.Prefix {
			continue
		}
		rec, err := given.Snapshot().Get(ctx, []byte(s.Key))
		if err != nil {
			return err
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
	return nil
}

// is tells whether a record of the origin is this one.
func (k *kept) is(rec *snapshot.Record) bool {
	return k.ModRevision == rec.ModRevision && bytes.Equal(k.Stored, rec.Value)
}
