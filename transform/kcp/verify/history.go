package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// trail is what the origin's file still has of the moved logical clusters, dead or alive, by key behind the storage prefix: the values
// of others are not compared by it.
type trail struct {
	*judge
	layouts keys.Layouts
	had     map[string]*snapshot.Record // what lived when the archive was made
	written map[string]*snapshot.Record // the last that was written since
	live    map[string]bool
}

// judgeTrail finds out whether the archive has the last of the logical clusters: a purge takes away what lives, and an archive that is
// older than that lacks what was written in between. The tombstones of a purge leave the history of what they end in the file; where
// it is not there (--scrub), only the input of the purge can tell.
func (j *judge) judgeTrail(ctx context.Context) error {
	p := trail{judge: j, had: map[string]*snapshot.Record{}, written: map[string]*snapshot.Record{}, live: map[string]bool{}}
	var err error
	if p.layouts, err = j.OriginOut.Layouts(ctx); err != nil {
		return err
	}
	for rec, err := range j.OriginOut.Snapshot().Scan(ctx) {
		if err != nil {
			return err
		}
		p.add(rec)
	}
	p.judgeWritten()
	return p.judgeMissing(ctx, p.judgeHad())
}

func (p *trail) add(rec snapshot.Scanned) {
	at, _, err := p.layouts.Parse(rec.Key)
	if err != nil || at.Shard != "" || !p.moved[at.Cluster] {
		return
	}
	if at.Prefix != p.from.Prefix {
		if rec.Live {
			p.found(CodeElsewhere, p.OriginOut, rec.Key, "it lies below the prefix %q, and %q was moved away from below %q", at.Prefix, at.Cluster, p.from.Prefix)
		}
		return
	}
	key, kept := string(rec.Key[len(p.from.Prefix):]), *rec.Record // which is the next one's, too
	switch since := p.manifest.Origin.Revision; {
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

// judgeWritten finds what was written after the archive was made, and is gone. What lives still is judged as that.
func (p *trail) judgeWritten() {
	for _, key := range slices.Sorted(maps.Keys(p.written)) {
		if rec := p.written[key]; !p.live[key] {
			p.found(CodeArchiveOutdated, p.OriginOut, rec.Key, "it was written at revision %s and deleted since; the archive was made at %d, and lacks that",
				rec.Revision, p.manifest.Origin.Revision)
		}
	}
}

// judgeHad compares what lived when the archive was made with what it has. missing are records of the archive that the file knows
// nothing of.
func (p *trail) judgeHad() (missing int) {
	for _, key := range slices.Sorted(maps.Keys(p.had)) {
		rec, was := p.had[key], p.archived[key]
		switch {
		case p.live[key]:
		case was == nil:
			p.found(CodeArchiveOutdated, p.OriginOut, rec.Key, "it lived at revision %d, at which the archive was made; the archive does not have it", p.manifest.Origin.Revision)
		case was.entry.ModRevision != rec.ModRevision || !bytes.Equal(was.entry.Stored, rec.Value):
			p.found(CodeArchiveOutdated, p.OriginOut, rec.Key, "at revision %d, at which the archive was made, it was of revision %d; the archive has another, of %d",
				p.manifest.Origin.Revision, rec.ModRevision, was.entry.ModRevision)
		}
	}
	for key, was := range p.archived {
		if !was.definition && p.had[key] == nil && p.written[key] == nil {
			missing++
		}
	}
	return missing
}

// judgeMissing judges a file without the history of what was moved. The revision tells whether it is of what the archive was made of, or
// of the input of the purge, which judgeGivenOrigin compares with the archive: a file that is written anew ends one above its input,
// as does none that was written to, and has a revision more for each copy that moved in its own cache.
func (p *trail) judgeMissing(ctx context.Context, missing int) error {
	if missing == 0 {
		return nil
	}
	is, err := p.OriginOut.Snapshot().Revision(ctx)
	if err != nil {
		return err
	}
	was, of := p.manifest.Origin.Revision, "the shard that the archive was made of"
	if p.Origin != nil {
		of = pathOf(p.Origin)
		if was, err = p.Origin.Snapshot().Revision(ctx); err != nil {
			return err
		}
	}
	knows := fmt.Sprintf("it knows nothing any more of %s of the archive (cluster purge --scrub)", survey.Counted(missing, "record"))
	switch {
	case is != was+1+p.arrived:
		p.unjudged(QuestionLost, p.OriginOut, nil, fmt.Sprintf(
			"%s; its revision is %d, so that %s, at %d, is not what was purged last, and nobody can tell whether those were the last", knows, is, of, was))
	case p.Origin == nil:
		p.note("%s: %s; that those were the last is told by its revision, %d, alone; --origin FILE, the input of the purge, compares them", pathOf(p.OriginOut), knows, is)
	}
	return nil
}

// compareGiven compares the logical clusters in the file that is given for the origin with the archive.
func (j *judge) compareGiven(ctx context.Context, left []string) error {
	ttl, err := j.Origin.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	kept, err := j.Archive.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for key, was := range j.archived {
		missing[key] = !was.definition
	}
	for _, full := range left {
		rec, err := j.Origin.Snapshot().Get(ctx, []byte(full))
		if err != nil {
			return err
		}
		key := full[len(j.from.Prefix):]
		delete(missing, key)
		was := j.archived[key]
		switch {
		case was == nil:
			j.found(CodeArchiveOutdated, j.Origin, rec.Key, "the archive does not have it")
		case !sameOrigin(was.entry, rec) || kept[was.entry.Lease] != ttl[rec.Lease]:
			j.found(CodeArchiveOutdated, j.Origin, rec.Key, "the archive has another, of revision %d; here it is of %d", was.entry.ModRevision, rec.ModRevision)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		if missing[key] {
			j.found(CodeArchiveOutdated, j.Origin, []byte(j.from.Prefix+key), "the archive has it; here it is not")
		}
	}
	return nil
}

func sameOrigin(was *inspect.Entry, is *snapshot.Record) bool {
	return was.ModRevision == is.ModRevision && bytes.Equal(was.Stored, is.Value)
}
