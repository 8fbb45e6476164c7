package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// copies are what one file with caches tells about the copies of the logical clusters, by the key that they have on the destination.
type copies struct {
	*judge
	file    *cacheFile
	layouts keys.Layouts
	all     map[string]*copied
	before  bool // the input of the purge is at hand
}

// copied is one copy, as the origin wrote it and as the destination has it.
type copied struct {
	cluster string
	was     *snapshot.Record // the last value from the origin; nil where nothing tells it
	gone    int64            // revision at which the origin's was deleted; 0 where it lives, or no deletion is in the file
	left    bool             // the origin's lives
	is      *snapshot.Record // the destination's; nil where there is none
	prior   *snapshot.Record // the destination's in the input of the purge
}

// judgeCopies compares the copies that caches have under the destination's name with those that the origin wrote, and finds what was
// deleted instead. Without the input of the purge, it goes by the history that the deletions leave.
func (j *judge) judgeCopies(ctx context.Context) error {
	j.judgeExported()
	if j.verdict.From == "" || j.verdict.To == "" {
		return nil // judgeCopy says so where there are copies
	}
	for _, f := range j.caches {
		if len(f.caches) == 0 {
			continue
		}
		c := copies{judge: j, file: f, all: map[string]*copied{}, before: f.before != nil}
		if err := c.judgeFile(ctx); err != nil {
			return err
		}
	}
	return j.compareCaches(ctx)
}

// judgeExported finds APIExports of the logical clusters of which no cache has a copy: a shard that starts then removes the labels of
// their permission claims from the objects of all tenants.
func (j *judge) judgeExported() {
	with := j.withCaches()
	has := j.cachedExports(with)
	for _, key := range slices.Sorted(maps.Keys(j.archived)) {
		k := j.archived[key].place
		if k.Resource != clusters.ExportType() || !k.Custom {
			continue
		}
		j.exporters[k.Cluster] = true
		switch {
		case has[exportPlace(k)]:
		case len(with) == 0:
			j.unjudged(QuestionLost, j.DestinationOut, []byte(j.to.Prefix+key), fmt.Sprintf(
				"no cache was given (--cache FILE): whether a cache has a copy of APIExport %q of %q is not known, and other tenants need it", k.Name, k.Cluster))
		default:
			j.foundIn(CodeCopyLost, with[0].path, exportKey(with[0].caches[0], k, j.verdict.To), "no cache has a copy of APIExport %q of %q: "+
				"a shard that starts then removes the labels of its permission claims from the objects of all tenants", k.Name, k.Cluster)
		}
	}
}

// cachedExports are the APIExports of the logical clusters that caches have a copy of, from whatever shard.
func (j *judge) cachedExports(with []*cacheFile) map[keys.Key]bool {
	has := map[keys.Key]bool{}
	for _, f := range with {
		for _, cache := range f.caches {
			for _, c := range cache.Copies {
				for _, key := range c.Keys {
					k, err := (keys.KCPCache{Prefix: cache.Prefix}).Parse([]byte(key))
					if err == nil && j.moved[k.Cluster] && k.Resource == clusters.ExportType() {
						has[exportPlace(k)] = true
					}
				}
			}
		}
	}
	return has
}

// exportPlace is what is the same in the key of an APIExport and in those of its copies.
func exportPlace(k keys.Key) keys.Key {
	return keys.Key{Resource: k.Resource, Cluster: k.Cluster, Name: k.Name}
}

// exportKey is where a copy should be; "" where the destination's name is not known.
func exportKey(cache *clusters.Cache, k keys.Key, shard string) string {
	if shard == "" {
		return ""
	}
	k.Shard = shard
	return string((keys.KCPCache{Prefix: cache.Prefix}).Format(k))
}

func (j *judge) withCaches() (with []*cacheFile) {
	for _, f := range j.caches {
		if len(f.caches) > 0 {
			with = append(with, f)
		}
	}
	return with
}

func (c *copies) judgeFile(ctx context.Context) (err error) {
	if c.layouts, err = c.file.out.Layouts(ctx); err != nil {
		return err
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	if c.before {
		if err := c.readBefore(ctx); err != nil {
			return err
		}
	}
	began := c.began()
	for _, to := range slices.Sorted(maps.Keys(c.all)) {
		if err := c.judgeOne(ctx, to, c.all[to], began); err != nil {
			return err
		}
	}
	return nil
}

// at tells of which copy a key is, and whether it is the destination's; nil for a key of no copy that moves.
func (c *copies) at(key []byte) (one *copied, arrived bool) {
	k, layout, err := c.layouts.Parse(key)
	if err != nil || k.Shard == "" || !c.moved[k.Cluster] || k.Shard != c.verdict.From && k.Shard != c.verdict.To {
		return nil, false
	}
	arrived, k.Shard = k.Shard == c.verdict.To, c.verdict.To
	to := string(layout.Format(k))
	if c.all[to] == nil {
		c.all[to] = &copied{cluster: strings.Clone(k.Cluster)}
	}
	return c.all[to], arrived
}

// read takes the history of the file.
func (c *copies) read(ctx context.Context) error {
	for rec, err := range c.file.out.Snapshot().Scan(ctx) {
		if err != nil {
			return err
		}
		one, arrived := c.at(rec.Key)
		kept := *rec.Record // which is the next one's, too
		switch {
		case one == nil:
		case arrived && rec.Live:
			one.is = &kept
		case arrived:
		case rec.Tombstone:
			one.gone = rec.Revision.Main
		default:
			one.was, one.gone, one.left = &kept, 0, rec.Live
		}
	}
	return nil
}

// readBefore takes the copies from the input of the purge.
func (c *copies) readBefore(ctx context.Context) error {
	for _, one := range c.all {
		one.was = nil
	}
	for rec, err := range c.file.before.Snapshot().Live(ctx, nil) {
		if err != nil {
			return err
		}
		one, arrived := c.at(rec.Key)
		kept := *rec
		switch {
		case one == nil:
		case arrived:
			one.prior = &kept
		default:
			one.was = &kept
		}
	}
	return nil
}

// began is the revision, by logical cluster, at which copies began to move: a purge writes all of the destination's before it deletes the
// origin's. What was deleted earlier, kcp had deleted.
func (c *copies) began() map[string]int64 {
	began := map[string]int64{}
	for _, one := range c.all {
		if one.was == nil || one.is == nil || one.left || !c.before && one.is.CreateRevision > one.gone {
			continue
		}
		if at, ok := began[one.cluster]; !ok || one.is.CreateRevision < at {
			began[one.cluster] = one.is.CreateRevision
		}
	}
	return began
}

func (c *copies) judgeOne(ctx context.Context, to string, one *copied, began map[string]int64) error {
	since, moves := began[one.cluster]
	switch {
	case one.left: // which judgeCopy finds
	case one.is == nil && one.prior != nil:
		c.foundIn(CodeCopyLost, c.file.path, to, "shard %q had a copy of this object before the move, and does not have it", c.verdict.To)
	case one.is == nil && one.was == nil:
	case one.is == nil && (c.before && (moves || c.exporters[one.cluster]) || moves && one.gone > since):
		c.foundIn(CodeCopyLost, c.file.path, to, "shard %q wrote a copy of this object, and %q does not have it", c.verdict.From, c.verdict.To)
	case one.is == nil: // deleted before, or the copies of one that exports nothing, which kcp makes again
	case one.prior != nil && equalRecords(one.prior, one.is):
		c.note("%s: shard %q had %s before the move, and it stayed", c.file.path, c.verdict.To, to)
	case one.was == nil && c.before:
		c.foundIn(CodeCopyChanged, c.file.path, to, "shard %q did not write a copy of this object", c.verdict.From)
	case one.was == nil:
		c.verdict.Unjudged = append(c.verdict.Unjudged, Unjudged{QuestionLost, c.file.path, to,
			fmt.Sprintf("the file does not tell what shard %q wrote of it; the input of the purge does (--cache-before, --origin, --destination)", c.verdict.From)})
	default:
		return c.compare(ctx, to, one)
	}
	return nil
}

// compare finds what is not the same in a copy but for its key and the shard that it names.
func (c *copies) compare(ctx context.Context, to string, one *copied) error {
	c.checked[QuestionLost]++
	was := &inspect.Entry{Key: one.was.Key, Stored: one.was.Value}
	is := &inspect.Entry{Key: one.is.Key, Stored: one.is.Value}
	for _, e := range []*inspect.Entry{was, is} {
		if err := c.file.out.Open(ctx, e); err != nil {
			return err
		}
	}
	if survey.IsEncrypted(was.Stored) && !survey.IsEncrypted(is.Stored) {
		c.foundIn(CodeInTheClear, c.file.path, to, "it was encrypted at rest under shard %q, and is not any more", c.verdict.From)
		return nil
	}
	for _, e := range []*inspect.Entry{was, is} {
		if e.Sealed != nil {
			c.verdict.Unjudged = append(c.verdict.Unjudged, Unjudged{QuestionLost, c.file.path, string(e.Key), e.Sealed.Error()})
			return nil
		}
	}
	want, err := survey.CopyFor(was.Value, c.verdict.To)
	switch {
	case err != nil || !bytes.Equal(want, is.Value):
		c.foundIn(CodeCopyChanged, c.file.path, to, "more of it than its key and %s is not what shard %q wrote", survey.AnnotationCopiedFrom, c.verdict.From)
	case one.was.Lease != one.is.Lease:
		c.foundIn(CodeCopyChanged, c.file.path, to, "it is attached to lease %x, and was to %x", uint64(one.is.Lease), uint64(one.was.Lease))
	}
	return nil
}

// compareCaches compares all other records of a cache server's own file with the input of its purge.
func (j *judge) compareCaches(ctx context.Context) error {
	for n, out := range j.Caches {
		f := j.caches[len(j.caches)-len(j.Caches)+n]
		if f.before == nil {
			j.note("of %s only the copies of what was moved were judged; --cache-before FILE compares all other records", f.path)
			continue
		}
		layouts, err := out.Layouts(ctx)
		if err != nil {
			return err
		}
		c := copies{judge: j, file: f, layouts: layouts, all: map[string]*copied{}}
		skip := func(key []byte) bool {
			one, _ := c.at(key)
			return one != nil
		}
		if err := (&comparison{judge: j, code: CodeCacheTouched, in: f.before, out: out, skip: skip}).run(ctx); err != nil {
			return err
		}
		if err := j.compareLeases(ctx, CodeCacheTouched, f.before, out); err != nil {
			return err
		}
	}
	return nil
}
