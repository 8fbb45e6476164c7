package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// checkOrigin finds live records of the logical clusters on the origin, and changes to all others
// since the archive was made.
func (c *checker) checkOrigin(ctx context.Context) error {
	theirs := survey.NewSelection(c.origin.Layouts)
	for name := range c.archive.moved {
		theirs.Add(survey.Place{Prefix: c.from.Prefix, Cluster: name})
		for _, cache := range c.origin.Caches {
			theirs.Add(survey.Place{Prefix: cache.Prefix, Shard: c.From, Cluster: name})
		}
	}
	if err := c.addArrived(ctx, theirs); err != nil {
		return err
	}
	left, err := theirs.Split(ctx, c.origin.Reader)
	if err != nil {
		return err
	}
	for _, s := range left.Keys {
		if s.Prefix == c.from.Prefix {
			c.found(codeStillAtOrigin, c.origin.file, s.Key, "it is of logical cluster %q, which was moved", s.Cluster)
		}
	}
	rest := left.Rest.Sum()
	c.checked[QuestionDoubled] += rest.Keys + len(left.Keys)
	c.checked[QuestionTouched] += rest.Keys
	if err := c.checkHistory(ctx, int64(len(theirs.Created))); err != nil {
		return err
	}
	if err := c.checkGiven(ctx, theirs); err != nil || rest == c.archive.manifest.Origin.Rest {
		return err
	}
	return c.nameCulprits(ctx, theirs)
}

// addArrived excludes from the rest the copies that the purge gave to the destination in a cache of
// the origin's file.
func (c *checker) addArrived(ctx context.Context, theirs *survey.Selection) error {
	for _, copied := range c.origin.Copies() {
		if !c.archive.moved[copied.Cluster] || copied.Shard != c.To {
			continue
		}
		for _, key := range copied.Keys {
			rec, err := c.origin.Snapshot().Get(ctx, []byte(key))
			if err != nil {
				return err
			}
			if rec != nil && rec.CreateRevision > c.archive.manifest.Origin.Revision {
				theirs.Created[key] = true
			}
		}
	}
	return nil
}

// checkGiven finds out whether the archive was made of the given origin, which may be packed
// differently.
func (c *checker) checkGiven(ctx context.Context, theirs *survey.Selection) error {
	given := c.origin.before
	if given == nil {
		return nil
	}
	was, err := theirs.Split(ctx, given.Reader)
	if err != nil {
		return err
	}
	if was.Rest.Sum() != c.archive.manifest.Origin.Rest {
		c.found(codeOtherOrigin, given, "", "the archive was made of another file, with SHA-256 %s", c.archive.manifest.Origin.SHA256)
	}
	return c.compareGiven(ctx, given, was.Keys)
}

// nameCulprits reports the records by which the rest of the origin differs: by comparison with the
// input of the purge, or those written since.
func (c *checker) nameCulprits(ctx context.Context, theirs *survey.Selection) error {
	before := len(c.Findings)
	if c.origin.before != nil {
		if err := (&comparison{checker: c, code: codeOriginTouched, out: c.origin, skip: theirs.Purged}).run(ctx); err != nil {
			return err
		}
	}
	since := c.archive.manifest.Origin.Revision
	for rec, err := range c.origin.Snapshot().Records(ctx) {
		if err != nil {
			return err
		}
		if rec.Revision.Main <= since || len(rec.Key) == 0 || rec.Tombstone && theirs.Has(rec.Key) || theirs.Created[string(rec.Key)] {
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
	case len(c.Findings) > before:
	case c.archive.manifest.Origin.Shard == "" && len(c.origin.Caches) > 0:
		c.unchecked(QuestionTouched, c.origin.file, "", "it has a cache, and the archive does not say which copies in it were the origin's")
	default:
		c.found(codeOtherOrigin, c.origin.file, "", "its other records are not those that the archive was made beside, at revision %d of a file with "+
			"SHA-256 %s; --origin FILE names them", since, c.archive.manifest.Origin.SHA256)
	}
	return nil
}

// checkDoubled finds logical clusters that live on both sides, and stale copies in caches.
func (c *checker) checkDoubled(context.Context) error {
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
	return nil
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
