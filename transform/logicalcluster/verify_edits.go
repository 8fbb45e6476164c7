package logicalcluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/snapshot"
)

func logicalClusterType() schema.GroupResource {
	return schema.GroupResource{Group: "core.kcp.io", Resource: "logicalclusters"}
}

// compareLogicalCluster judges a LogicalCluster that is another than in the archive: an import drops the mark of a live migration,
// and may say where it lives now. All else is as it was, to the byte.
func (j *judge) compareLogicalCluster(was []byte, now *inspect.Entry) error {
	want, err := dropMigrating(was)
	meta, metaErr := encoding.ReadMeta(now.Value)
	if err != nil || metaErr != nil {
		j.found(CodeRecordChanged, j.DestinationOut, now.Key, "its value is not the archive's, and cannot be read")
		return nil
	}
	says := meta.Annotations[annotationShard]
	moved, err := moveLogicalCluster(want, says)
	switch _, migrating := meta.Annotations[annotationMigrating]; {
	case migrating:
		j.found(CodeStillMigrating, j.DestinationOut, now.Key, "it has the annotation %s: kcp would answer no request for it", annotationMigrating)
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
		if c == nil || c.Owner == nil || c.Owner.Resource != workspaceType().Resource || c.ShardName != j.verdict.To {
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

// ownerSays is where a Workspace says that a logical cluster lives; seen is false where neither side has one.
func (j *judge) ownerSays(name string) (shard string, seen bool) {
	for _, side := range []*clusters.Shard{j.to, j.from} {
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
// destination.
func (j *judge) onlyMoved(was, now []byte) bool {
	meta, err := encoding.ReadMeta(now)
	if err != nil {
		return false
	}
	want, err := moveWorkspace(was, cmp.Or(j.verdict.To, meta.Annotations[annotationShard]), meta.Labels[labelRegion])
	return err == nil && bytes.Equal(now, want)
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

// judgeDefinitions finds the definitions that the archive's objects need on the destination.
func (j *judge) judgeDefinitions(ctx context.Context) error {
	for _, d := range j.manifest.Definitions {
		j.checked[QuestionLost]++
		key := []byte(j.to.Prefix + d.Key)
		now, err := j.DestinationOut.Get(ctx, key)
		if err != nil {
			return err
		}
		is := j.to.Definition(d.UID)
		switch {
		case now == nil || is == nil:
			j.found(CodeDefinitionLost, j.DestinationOut, key, "without this definition no server serves the %s of the logical cluster", d.Resource)
			continue
		case now.Sealed != nil:
			j.unjudged(QuestionLost, j.DestinationOut, key, now.Sealed.Error())
			continue
		case is.Problem != "":
			j.unjudged(QuestionLost, j.DestinationOut, key, is.Problem)
			continue
		}
		if err := j.judgeDefinition(ctx, d.Key, now); err != nil {
			return err
		}
		for _, version := range d.StoredVersions {
			if !slices.Contains(is.StoredVersions, version) {
				j.found(CodeStoredVersions, j.DestinationOut, key, "its storedVersions lack %s, at which objects of the logical cluster may be stored", version)
			}
		}
	}
	for _, d := range j.manifest.Missing {
		if j.to.Definition(d.UID) == nil {
			j.note("the definition %s (%s) was missing on the origin and is missing on the destination: no server serves its objects", d.UID, d.Resource)
		}
	}
	return nil
}

// judgeDefinition compares the schema: metadata and conditions are each shard's own.
func (j *judge) judgeDefinition(ctx context.Context, key string, now *inspect.Entry) error {
	was := j.archived[key].entry
	if err := j.Archive.Open(ctx, was); err != nil {
		return err
	}
	if was.Sealed != nil {
		j.unjudged(QuestionLost, j.Archive, was.Key, was.Sealed.Error())
		return nil
	}
	before, _, err := encoding.DecodeObject(was.Value)
	if err != nil {
		j.unjudged(QuestionLost, j.Archive, was.Key, err.Error())
		return nil
	}
	after, _, err := encoding.DecodeObject(now.Value)
	if err != nil {
		j.unjudged(QuestionLost, j.DestinationOut, now.Key, err.Error())
		return nil
	}
	if before["apiVersion"] == after["apiVersion"] && !reflect.DeepEqual(before["spec"], after["spec"]) {
		j.found(CodeDefinitionDiffers, j.DestinationOut, now.Key, "its spec is not the one that the origin had")
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

func (j *judge) knows(identity string) bool {
	for _, c := range j.to.Clusters {
		for _, e := range c.Exports {
			if e.Identity == identity {
				return true
			}
		}
		for _, b := range c.Bindings {
			for _, bound := range b.Bound {
				if bound.Identity == identity && !j.moved[c.Name] {
					return true
				}
			}
		}
	}
	for _, f := range j.caches {
		for _, c := range f.caches {
			for _, e := range c.Exports {
				if e.Identity == identity {
					return true
				}
			}
		}
	}
	return false
}
