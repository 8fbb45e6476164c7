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

// judgeOrigin finds what of the logical clusters is still alive on the origin, and whether all else is what the archive was made
// beside.
func (j *judge) judgeOrigin(ctx context.Context) error {
	layouts, err := j.OriginOut.Layouts(ctx)
	if err != nil {
		return err
	}
	theirs := survey.NewSelection(layouts)
	for name := range j.moved {
		theirs.Add(survey.Place{Prefix: j.from.Prefix, Cluster: name})
		for _, c := range j.caches[0].caches {
			theirs.Add(survey.Place{Prefix: c.Prefix, Shard: j.verdict.From, Cluster: name})
		}
	}
	if err := j.addArrived(ctx, theirs); err != nil {
		return err
	}
	left, err := theirs.Split(ctx, j.OriginOut)
	if err != nil {
		return err
	}
	for _, key := range left.Keys {
		if at, _ := theirs.Of([]byte(key)); at.Prefix == j.from.Prefix {
			j.found(CodeStillAtOrigin, j.OriginOut, []byte(key), "it is of logical cluster %q, which was moved", at.Cluster)
		}
	}
	rest := left.Rest.Sum()
	j.checked[QuestionDoubled] += rest.Keys + len(left.Keys)
	j.checked[QuestionTouched] += rest.Keys
	if err := j.judgeTrail(ctx); err != nil {
		return err
	}
	if err := j.judgeGivenOrigin(ctx, theirs); err != nil || rest == j.manifest.Origin.Rest {
		return err
	}
	return j.nameCulprits(ctx, theirs)
}

// addArrived takes the copies that a cache in the origin's own file got from the purge for what they are: no part of the rest.
func (j *judge) addArrived(ctx context.Context, theirs *survey.Selection) error {
	for _, cache := range j.caches[0].caches {
		for _, c := range cache.Copies {
			if !j.moved[c.Cluster] || c.Shard != j.verdict.To {
				continue
			}
			for _, key := range c.Keys {
				rec, err := j.OriginOut.Snapshot().Get(ctx, []byte(key))
				if err != nil {
					return err
				}
				if rec != nil && rec.CreateRevision > j.manifest.Origin.Revision {
					theirs.Created[key] = true
				}
			}
		}
	}
	j.arrived = int64(len(theirs.Created))
	return nil
}

// judgeGivenOrigin finds out whether the file that is given for the origin is the one that the archive was made of. It may be packed in
// another way.
func (j *judge) judgeGivenOrigin(ctx context.Context, theirs *survey.Selection) error {
	if j.Origin == nil {
		return nil
	}
	was, err := theirs.Split(ctx, j.Origin)
	if err != nil {
		return err
	}
	if was.Rest.Sum() != j.manifest.Origin.Rest {
		j.found(CodeOtherOrigin, j.Origin, nil, "the archive was made of another file, with SHA-256 %s", j.manifest.Origin.SHA256)
	}
	return j.compareGiven(ctx, slices.DeleteFunc(was.Keys, func(key string) bool {
		at, _ := theirs.Of([]byte(key))
		return at.Prefix != j.from.Prefix
	}))
}

// nameCulprits says which records make the rest of the origin another than it was: by comparison where what purge was given is at
// hand, else those that were written since.
func (j *judge) nameCulprits(ctx context.Context, theirs *survey.Selection) error {
	before := len(j.verdict.Findings)
	if j.Origin != nil {
		c := comparison{judge: j, code: CodeOriginTouched, in: j.Origin, out: j.OriginOut, skip: theirs.Purged}
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	since := j.manifest.Origin.Revision
	for rec, err := range j.OriginOut.Snapshot().Records(ctx) {
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
		j.found(CodeOriginTouched, j.OriginOut, rec.Key, "it was %s at revision %s; the archive was made at %d", what, rec.Revision, since)
	}
	switch {
	case len(j.verdict.Findings) > before:
	case j.manifest.Origin.Shard == "" && len(j.caches[0].caches) > 0:
		j.unjudged(QuestionTouched, j.OriginOut, nil, "it has a cache, and the archive does not say which copies in it were the origin's")
	default:
		j.found(CodeOtherOrigin, j.OriginOut, nil, "its other records are not those that the archive was made beside, at revision %d of a file with SHA-256 %s; --origin FILE names them", since, j.manifest.Origin.SHA256)
	}
	return nil
}

// judgeDoubled finds logical clusters that live on both sides, and what caches still have of them as the origin wrote it.
func (j *judge) judgeDoubled(context.Context) error {
	for _, c := range j.from.Clusters {
		if (!c.System || j.moved[c.Name]) && j.to.Cluster(c.Name) != nil {
			j.found(CodeLivesTwice, j.OriginOut, nil, "logical cluster %q (%s) lives here and in %s: two shards would serve it", c.Name, c.Path, pathOf(j.DestinationOut))
		}
	}
	caches := 0
	for _, f := range j.caches {
		caches += len(f.caches)
		for _, cache := range f.caches {
			for _, copied := range cache.Copies {
				if j.moved[copied.Cluster] {
					j.judgeCopy(f, copied)
				}
			}
		}
	}
	if caches == 0 {
		j.note("no cache was given (--cache FILE): whether the cache server still has copies from the origin was not judged")
	}
	return nil
}

// isStale tells whether a cache's copy of a logical cluster, as shard wrote it, is one that a move leaves behind: only the destination
// writes copies of what was moved from now on. What is called system: is on each shard.
func (j *judge) isStale(shard, cluster string) bool {
	to := j.verdict.To
	return j.moved[cluster] && (shard == j.verdict.From || to != "" && shard != to && !strings.HasPrefix(cluster, "system:"))
}

// isArrivedCopy tells whether a key is that of a copy in a cache under the destination's name.
func (j *judge) isArrivedCopy(place keys.Key) bool {
	return place.Shard != "" && place.Shard == j.verdict.To && j.moved[place.Cluster]
}

// judgeCopy judges what a cache has of a moved logical cluster.
func (j *judge) judgeCopy(f *cacheFile, copied *clusters.Copy) {
	j.checked[QuestionDoubled] += len(copied.Keys)
	everywhere := strings.HasPrefix(copied.Cluster, "system:")
	switch to := j.verdict.To; {
	case j.isStale(copied.Shard, copied.Cluster):
		for _, key := range copied.Keys {
			j.foundIn(CodeStaleCopy, f.path, key, "a copy of %q as shard %q wrote it, where it does not live any more", copied.Cluster, copied.Shard)
		}
	case everywhere && j.verdict.From != "", copied.Shard == to:
	default:
		j.verdict.Unjudged = append(j.verdict.Unjudged, Unjudged{QuestionDoubled, f.path, "",
			fmt.Sprintf("it has copies of %q as shard %q wrote them, and nothing says what both sides are called; --from-shard and --as-shard name them",
				copied.Cluster, copied.Shard)})
	}
}
