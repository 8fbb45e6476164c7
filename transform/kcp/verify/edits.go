package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func isLogicalCluster(place keys.Key) bool {
	return place.Resource == clusters.LogicalClusterType() && place.Custom
}

// compareLogicalCluster judges a LogicalCluster: an import drops the mark of a live migration,
// and may say where it lives now. All else is as it was, to the byte.
func (j *judge) compareLogicalCluster(was []byte, now *inspect.Entry) error {
	want, err := survey.DropMigrating(was)
	meta, metaErr := encoding.ReadMeta(now.Value)
	if err != nil || metaErr != nil {
		j.found(CodeRecordChanged, j.DestinationOut, now.Key, "its value is not the archive's, and cannot be read")
		return nil
	}
	says := meta.Annotations[clusters.AnnotationShard]
	moved, err := survey.MoveLogicalCluster(want, says)
	switch _, migrating := meta.Annotations[clusters.AnnotationMigrating]; {
	case migrating:
		j.found(CodeStillMigrating, j.DestinationOut, now.Key, "it has the annotation %s: kcp would answer no request for it", clusters.AnnotationMigrating)
	case bytes.Equal(now.Value, want):
	case err != nil || !bytes.Equal(now.Value, moved):
		j.found(CodeRecordChanged, j.DestinationOut, now.Key, "more of it than an import changes is not the archive's")
	case j.verdict.To == "":
		j.unjudged(QuestionLost, j.DestinationOut, now.Key, "it says that it lives on a shard, and the file does not say what this one is called; --as-shard says it")
	case says != j.verdict.To:
		j.found(CodeShardMisnamed, j.DestinationOut, now.Key, "it says that it lives on %q, and this shard is %q", says, j.verdict.To)
	}
	return nil
}

// judgeOwners notes logical clusters that say already that they live on the destination, while their Workspaces do not: kcp mends a
// Workspace only together with a LogicalCluster that says otherwise (kcp pkg/reconciler/core/logicalcluster).
func (j *judge) judgeOwners(context.Context) error {
	for _, moved := range j.manifest.Clusters {
		c := j.to.Cluster(moved.Name)
		if c == nil || c.Owner == nil || c.Owner.Resource != clusters.WorkspaceType().Resource || c.ShardName != j.verdict.To {
			continue
		}
		if says, seen := j.ownerSays(c.Name); !seen {
			j.note("%q says already that it lives on %q, so that kcp leaves its Workspace %q in %q as it is; see that it says so too", c.Name, c.ShardName, c.Owner.Name, c.Owner.Cluster)
		} else if says != j.verdict.To {
			j.note("%q says already that it lives on %q, so that kcp leaves its Workspace %q in %q as it is, which says %q: mend it with --fix-owner of cluster import, or by hand",
				c.Name, c.ShardName, c.Owner.Name, c.Owner.Cluster, says)
		}
	}
	return nil
}

// ownerSays is where a Workspace says that a logical cluster lives; seen is false where neither file has one.
func (j *judge) ownerSays(name string) (shard string, seen bool) {
	for _, side := range slices.Concat(j.toFile.Shards, j.fromFile.Shards) {
		for _, c := range side.Clusters {
			for _, w := range c.Workspaces {
				if w.Cluster == name {
					return w.ShardName, true
				}
			}
		}
	}
	return "", false
}

// onlyMoved tells whether two values of a Workspace differ in nothing but where its logical cluster lives, which is now on the
// destination, and in the destination's region.
func (j *judge) onlyMoved(was, now []byte) bool {
	before, beforeErr := encoding.ReadMeta(was)
	after, err := encoding.ReadMeta(now)
	if err != nil || beforeErr != nil {
		return false
	}
	region := after.Labels[survey.LabelRegion]
	if region != before.Labels[survey.LabelRegion] && !j.isRegion(region) {
		return false
	}
	want, err := survey.MoveWorkspace(was, cmp.Or(j.verdict.To, after.Annotations[clusters.AnnotationShard]), region)
	return err == nil && bytes.Equal(now, want)
}

// isRegion tells whether the destination is in a region, by its Shard object. Where no file has that, nobody knows.
func (j *judge) isRegion(region string) bool {
	var regions []string
	add := func(all []clusters.RegisteredShard) {
		for _, r := range all {
			if r.Name == j.verdict.To {
				regions = append(regions, r.Region)
			}
		}
	}
	for _, s := range slices.Concat(j.toFile.Shards, j.fromFile.Shards) {
		add(s.Registered)
	}
	for _, f := range j.caches {
		for _, c := range f.caches {
			add(c.Registered)
		}
	}
	if len(regions) == 0 {
		j.note("a Workspace names the region %q now, and no file has the Shard object %q, which tells its region (--cache FILE)", region, j.verdict.To)
		return true
	}
	return slices.Contains(regions, region)
}

// compareWorkspace judges the Workspace of a logical cluster: an import may have it say where the logical cluster lives now.
func (j *judge) compareWorkspace(ctx context.Context, was *inspect.Entry, rec *snapshot.Record) error {
	now := &inspect.Entry{Key: rec.Key, Stored: rec.Value}
	if err := j.DestinationOut.Open(ctx, now); err != nil {
		return err
	}
	switch {
	case now.Sealed != nil:
		j.unjudged(QuestionTouched, j.DestinationOut, rec.Key, now.Sealed.Error())
		return nil
	case was.Sealed != nil:
		j.unjudged(QuestionTouched, j.DestinationOut, rec.Key, was.Sealed.Error())
		return nil
	}
	if !j.onlyMoved(was.Value, now.Value) {
		j.found(CodeDestinationTouched, j.DestinationOut, rec.Key, "at revision %d more of it was changed than where its logical cluster lives: on %q", rec.ModRevision, j.verdict.To)
	}
	return nil
}

// judgeIdentities finds who vouches on the destination for the identities that the logical clusters rely on, the arrivals aside.
func (j *judge) judgeIdentities(ctx context.Context) error {
	file, err := clusters.Read(ctx, j.Archive)
	if err != nil {
		return err
	}
	shard, err := file.Shard([]string{j.manifest.Origin.Prefix})
	if err != nil {
		return fmt.Errorf("%s: %w", pathOf(j.Archive), err)
	}
	j.archiveShard = shard
	needs := map[string]string{} // a type, by identity
	for _, c := range shard.Clusters {
		for _, r := range c.Resources {
			needs[r.Identity] = r.Resource.String()
		}
		for _, b := range c.Bindings {
			for _, bound := range b.Bound {
				if !bound.Virtual {
					needs[bound.Identity] = bound.Resource.String()
				}
			}
		}
	}
	if hasUnread(shard) { // the manifest knows them, and not which of them have no records
		for _, id := range j.manifest.Identities {
			if !id.Own && len(id.Resources) > 0 {
				needs[id.Hash] = id.Resources[0]
			}
		}
	}
	delete(needs, "")
	for _, identity := range slices.Sorted(maps.Keys(needs)) {
		switch {
		case j.knows(identity):
		case hasUnread(j.to):
			j.unjudged(QuestionLost, j.DestinationOut, nil, fmt.Sprintf("what could be read does not have the identity %s, which %s needs, and not all could", identity, needs[identity]))
		default:
			j.found(CodeIdentityUnknown, j.DestinationOut, nil, "nothing that was there before has the identity %s, which %s needs", identity, needs[identity])
		}
	}
	return nil
}

// hasUnread tells whether a shard has records that tell about its logical clusters and could not be read.
func hasUnread(s *clusters.Shard) bool {
	return slices.ContainsFunc(s.Clusters, func(c *clusters.Cluster) bool {
		return slices.ContainsFunc(c.Problems, func(p clusters.Problem) bool { return p.Code != clusters.CodeKeyMismatch })
	})
}

// knows tells whether something vouches for an identity: a shard in the destination's file, or a cache. Where it is vouched for by what
// was moved alone, that is the APIExport itself.
func (j *judge) knows(identity string) bool {
	for _, s := range j.toFile.Shards {
		for _, c := range s.Clusters {
			for _, b := range c.Bindings {
				for _, bound := range b.Bound {
					if bound.Identity == identity && !j.moved[c.Name] {
						return true
					}
				}
			}
			if exports(c.Exports, identity) {
				return true
			}
		}
	}
	for _, f := range j.caches {
		for _, c := range f.caches {
			if exports(c.Exports, identity) {
				return true
			}
		}
	}
	return false
}

func exports(all []clusters.Export, identity string) bool {
	return slices.ContainsFunc(all, func(e clusters.Export) bool { return e.Identity == identity })
}
