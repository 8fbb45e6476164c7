package verify

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// decrypt decrypts a stored value; ok is false, and it is reported as unchecked, where no key
// decrypts it. The value is not kept, to save memory.
func (c *checker) decrypt(q Question, in *file, key, stored []byte) (value []byte, ok bool) {
	e := &inspect.Entry{Key: key, Stored: stored}
	if c.Err != nil || c.Failed(in.Decrypt(c.Ctx, e)) {
		return nil, false
	}
	if e.Undecryptable != nil {
		c.unchecked(q, in, string(key), e.Undecryptable)
	}
	return e.Value, e.Undecryptable == nil
}

// compareValue: the same bytes under the same key are the same value, decrypted or not. A
// LogicalCluster is always read, since the same value may still be wrong.
func (c *checker) compareValue(key keys.Key, was *kept, now *inspect.Entry) {
	encrypted, stillEncrypted := survey.IsEncrypted(was.Stored), survey.IsEncrypted(now.Stored)
	isLogicalCluster := key.Resource == clusters.LogicalClusterType && key.Custom
	same := bytes.Equal(was.Stored, now.Stored) && (!encrypted || bytes.Equal(was.Key, now.Key)) && !isLogicalCluster
	if same && encrypted && !c.configured || c.Failed(c.destination.Decrypt(c.Ctx, now)) {
		return
	}
	was.clear = !stillEncrypted && !(c.configured && now.Undecryptable == nil && !now.Stale)
	switch {
	case same && now.Undecryptable != nil && c.configured:
		c.unchecked(QuestionLost, c.destination.file, string(now.Key), now.Undecryptable)
		return
	case same:
		return
	case encrypted && !stillEncrypted:
		c.found(codeInTheClear, c.destination.file, string(now.Key), "it was encrypted at rest on the origin, and is not any more")
		return
	}
	value, ok := c.decrypt(QuestionLost, c.archive.file, was.Key, was.Stored)
	switch {
	case !ok:
	case now.Undecryptable != nil:
		c.unchecked(QuestionLost, c.destination.file, string(now.Key), now.Undecryptable)
	case isLogicalCluster:
		c.compareLogicalCluster(value, now)
	case bytes.Equal(value, now.Value):
	case c.isWorkspace(key) && c.onlyMoved(value, now.Value): // of a child that came along
	default:
		c.found(codeRecordChanged, c.destination.file, string(now.Key), "its value is not the archive's")
	}
}

// compareLogicalCluster checks a LogicalCluster: an import removes the mark of a live migration and
// may change the shard. All else is equal to the byte.
func (c *checker) compareLogicalCluster(was []byte, now *inspect.Entry) {
	in, key := c.destination.file, string(now.Key)
	want, err := survey.DropMigrating(was)
	meta, metaErr := encoding.ReadMeta(now.Value)
	if err != nil || metaErr != nil {
		c.found(codeRecordChanged, in, key, "its value is not the archive's, and cannot be read")
		return
	}
	says := meta.Annotations[clusters.AnnotationShard]
	moved, err := survey.MoveLogicalCluster(want, says)
	switch _, migrating := meta.Annotations[clusters.AnnotationMigrating]; {
	case migrating:
		c.found(codeStillMigrating, in, key, "it has the annotation %s: kcp would answer no request for it", clusters.AnnotationMigrating)
	case bytes.Equal(now.Value, want):
	case err != nil || !bytes.Equal(now.Value, moved):
		c.found(codeRecordChanged, in, key, "more of it than an import changes is not the archive's")
	case c.To == "":
		c.unchecked(QuestionLost, in, key, "it says that it lives on a shard, and the file does not say what this one is called; --as-shard says it")
	case says != c.To:
		c.found(codeShardMisnamed, in, key, "it says that it lives on %q, and this shard is %q", says, c.To)
	}
}

// compareWorkspace checks the Workspace of a logical cluster, in which an import may change the
// shard. stored is its value in the file in before the import.
func (c *checker) compareWorkspace(in *file, stored []byte, rec *snapshot.Record) {
	was := &inspect.Entry{Key: rec.Key, Stored: stored}
	now, ok := c.decrypt(QuestionTouched, c.destination.file, rec.Key, rec.Value)
	switch {
	case !ok || c.Failed(in.Decrypt(c.Ctx, was)):
	case was.Undecryptable != nil:
		c.unchecked(QuestionTouched, c.destination.file, string(rec.Key), was.Undecryptable)
	case !c.onlyMoved(was.Value, now):
		c.found(codeDestinationTouched, c.destination.file, string(rec.Key),
			"at revision %d more of it was changed than where its logical cluster lives: on %q", rec.ModRevision, c.To)
	}
}

// onlyMoved tells whether two values of a Workspace differ only in the shard, which is now the
// destination, and in its region.
func (c *checker) onlyMoved(was, now []byte) bool {
	before, beforeErr := encoding.ReadMeta(was)
	after, err := encoding.ReadMeta(now)
	if err != nil || beforeErr != nil {
		return false
	}
	region := after.Labels[survey.LabelRegion]
	if region != before.Labels[survey.LabelRegion] && !c.isRegion(region) {
		return false
	}
	want, err := survey.MoveWorkspace(was, cmp.Or(c.To, after.Annotations[clusters.AnnotationShard]), region)
	return err == nil && bytes.Equal(now, want)
}

// isRegion tells whether the destination may be in a region, by its Shard object.
func (c *checker) isRegion(region string) bool {
	known := false
	for _, out := range c.outputs {
		for _, r := range out.Registered() {
			if r.Name == c.To && r.Region == region {
				return true
			}
			known = known || r.Name == c.To
		}
	}
	if !known {
		c.note("a Workspace names the region %q now, and no file has the Shard object %q, which tells its region (--cache FILE)", region, c.To)
	}
	return !known
}

// checkOwners notes logical clusters that name the destination while their Workspaces do not: kcp
// corrects a Workspace only together with its LogicalCluster.
func (c *checker) checkOwners() {
	destination, origin := survey.NewIndex(c.destination.File), survey.NewIndex(c.origin.File)
	for _, moved := range c.archive.manifest.Clusters {
		is := c.to.Cluster(moved.Name)
		if is == nil || is.Owner == nil || is.Owner.Resource != clusters.WorkspaceType.Resource || is.ShardName != c.To {
			continue
		}
		const settled = "%q says already that it lives on %q, so that kcp leaves its Workspace %q in %q as it is"
		switch leading := slices.Concat(destination.Leading[is.Name], origin.Leading[is.Name]); {
		case len(leading) == 0:
			c.note(settled+"; see that it says so too", is.Name, is.ShardName, is.Owner.Name, is.Owner.Cluster)
		case leading[0].ShardName != c.To:
			c.note(settled+", which says %q: mend it with --fix-owner of kcp import, or by hand",
				is.Name, is.ShardName, is.Owner.Name, is.Owner.Cluster, leading[0].ShardName)
		}
	}
}
