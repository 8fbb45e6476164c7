package move

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// arrivals is one pass over the destination.
type arrivals struct {
	*checker
	leases map[int64]bool // of records of the logical clusters
	// others counts the values of other logical clusters, encrypted and plaintext.
	others map[schema.GroupResource]*storedAs
}

type storedAs struct{ encrypted, clear int }

// checkDestination compares the logical clusters on the destination with the archive. Records after
// the first record of the moved clusters belong to the import: an output is its input plus later
// revisions.
func (c *checker) checkDestination() error {
	a := arrivals{c, map[int64]bool{}, map[schema.GroupResource]*storedAs{}}
	if err := stream.Each(c.destination.Snapshot().Scan(c.ctx), a.add); err != nil {
		return err
	}
	for key, r := range c.archive.sorted() {
		if !r.seen && !r.definition {
			c.destination.found(codeRecordLost, c.destination.shard.Prefix+key,
				"the archive has it, the destination does not")
		}
		if n := a.others[r.key.Resource]; r.clear && n != nil && n.clear == 0 {
			c.destination.found(codeInTheClear, c.destination.shard.Prefix+key,
				"it is in the clear; all other %s of the destination, %d, are encrypted at rest",
				r.key.Resource, n.encrypted)
		}
	}
	return a.checkShared()
}

// checkShared finds other records that would expire with an imported lease.
func (a *arrivals) checkShared() error {
	return stream.Each(a.destination.Snapshot().Live(a.ctx, nil), func(rec *snapshot.Record) error {
		key, _, err := a.destination.Layouts.Parse(rec.Key)
		if a.leases[rec.Lease] && (err != nil || !a.arrived(key)) {
			a.destination.found(codeDestinationTouched, string(rec.Key),
				"it is attached to lease %x of a moved record, and would expire with it",
				uint64(rec.Lease))
		}
		return nil
	})
}

// add checks one record; records come in revision order.
func (a *arrivals) add(rec snapshot.Scanned) error {
	key, _, err := a.destination.Layouts.Parse(rec.Key)
	theirs := err == nil && key.Shard == "" && a.archive.moved[key.Cluster]
	switch {
	case theirs && rec.Live && key.Prefix != a.destination.shard.Prefix:
		a.destination.found(codeElsewhere, string(rec.Key), "it lies below the prefix %q, and %q was moved below %q",
			key.Prefix, key.Cluster,
			a.destination.shard.Prefix)
		return nil
	case err == nil && a.arrived(key):
		if !rec.Live {
			return nil
		}
		a.imported = cmp.Or(a.imported, rec.Revision.Main)
		return checked(a.compare(key, rec.Record))
	case len(rec.Key) == 0:
		return nil
	case err == nil && rec.Tombstone && key.Shard != "" && a.isStale(key.Shard, key.Cluster):
		return nil // removed from a cache in the same file; checkStale reports a remaining copy
	case err == nil && rec.Live && a.isArrivedCopy(key):
		return nil // checkCopies compares the copy
	case err != nil || key.Shard != "" || key.Cluster == "":
		key = keys.Key{}
	case rec.Live && key.Prefix == a.destination.shard.Prefix && !a.isDefinition(rec.Key, key):
		a.count(key, rec.Value)
	}
	if a.imported != 0 {
		return checked(a.checkLater(key, rec))
	}
	return nil
}

// count counts a value of another logical cluster.
func (a *arrivals) count(key keys.Key, stored []byte) {
	n := a.others[key.Resource]
	if n == nil {
		n = &storedAs{}
		a.others[key.Resource] = n
	}
	if isEncrypted(stored) {
		n.encrypted++
	} else {
		n.clear++
	}
}

// arrived reports whether a key on the destination belongs to a moved logical cluster.
func (c *checker) arrived(key keys.Key) bool {
	return key.Shard == "" && key.Prefix == c.destination.shard.Prefix && c.archive.moved[key.Cluster]
}

// isDefinition reports whether a key on the destination belongs to a definition in the archive.
func (c *checker) isDefinition(stored []byte, key keys.Key) bool {
	if key.Resource != keys.DefinitionType() {
		return false
	}
	r := c.archive.records[string(stored[len(c.destination.shard.Prefix):])]
	return r != nil && r.definition
}

// isWorkspace reports whether a key belongs to the Workspace of a moved logical cluster.
func (a *archived) isWorkspace(key keys.Key) bool {
	return key.Resource == kcp.WorkspaceType && a.workspaces[[2]string{key.Cluster, key.Name}]
}

// compare checks a live record of a moved logical cluster.
func (a *arrivals) compare(key keys.Key, rec *snapshot.Record) error {
	a.checked[QuestionLost]++
	was := a.archive.records[string(rec.Key[len(a.destination.shard.Prefix):])]
	if was == nil {
		a.destination.found(codeRecordAdded, string(rec.Key),
			"it is of logical cluster %q, and the archive does not have it", key.Cluster)
		return nil
	}
	was.seen = true
	after, granted := a.destination.leases[rec.Lease]
	switch before := a.archive.leases[was.Lease]; {
	case before != after:
		a.destination.found(codeLeaseDiffers, string(rec.Key),
			"its lease has a TTL of %d s (0: it has none), in the archive %d s", after, before)
	case rec.Lease != 0 && !granted:
		a.destination.found(codeLeaseDiffers, string(rec.Key),
			"it names lease %x, which the file does not have: it would expire with whoever is granted that",
			uint64(rec.Lease))
	case granted:
		a.leases[rec.Lease] = true
	}
	return a.compareValue(key, was, &inspect.Entry{Key: rec.Key, Stored: rec.Value, Value: rec.Value})
}

// checkLater checks another record after the first imported record: an import writes definitions
// before its records, and Workspaces after them. key is empty for a record outside a shard.
func (a *arrivals) checkLater(key keys.Key, rec snapshot.Scanned) error {
	what := "changed"
	switch {
	case rec.Tombstone:
		what = "deleted"
	case rec.CreateRevision == rec.ModRevision:
		what = "created"
	case a.archive.isWorkspace(key):
		was, err := a.before(rec.Key)
		if err != nil {
			return err
		}
		if was != nil {
			return a.compareWorkspace(a.destination.file, was, rec.Record)
		}
	}
	a.destination.found(codeDestinationTouched, string(rec.Key),
		"it was %s at revision %s, during the import or after it", what, rec.Revision)
	return nil
}

// before returns the stored value of a key before the import; nil for none.
func (a *arrivals) before(key []byte) (stored []byte, err error) {
	for rec, err := range a.destination.Snapshot().History(a.ctx, key) {
		if err != nil {
			return nil, err
		}
		if rec.Revision.Main >= a.imported {
			break
		}
		stored = rec.Value // nil for a tombstone
	}
	return stored, nil
}

// errUnchecked ends a comparison with an undecryptable or unreadable value; the value was reported.
var errUnchecked = errors.New("a value could not be compared")

// checked removes errUnchecked from the error of a comparison.
func checked(err error) error {
	if errors.Is(err, errUnchecked) {
		return nil
	}
	return err
}

// decrypt decrypts a stored value, which is not cached, to save memory.
func (c *checker) decrypt(q Question, in *file, key, stored []byte) ([]byte, error) {
	e := &inspect.Entry{Key: key, Stored: stored}
	if err := in.Decrypt(c.ctx, e); err != nil {
		return nil, err
	}
	if e.Undecryptable != nil {
		in.unchecked(q, string(key), "%v", e.Undecryptable)
		return nil, errUnchecked
	}
	return e.Value, nil
}

// compareValue compares a value with the archive's. Equal bytes under the same key are equal
// values, decrypted or not. A LogicalCluster is always read, since an equal value may still be
// wrong.
func (a *arrivals) compareValue(key keys.Key, was *kept, now *inspect.Entry) error {
	in := a.destination.file
	encrypted, stillEncrypted := isEncrypted(was.Stored), isEncrypted(now.Stored)
	isLogicalCluster := key.Resource == kcp.LogicalClusterType && key.Custom
	same := bytes.Equal(was.Stored, now.Stored) && (!encrypted || bytes.Equal(was.Key, now.Key)) && !isLogicalCluster
	if same && encrypted && !a.configured {
		return nil
	}
	if err := in.Decrypt(a.ctx, now); err != nil {
		return err
	}
	was.clear = !stillEncrypted && !(a.configured && now.Undecryptable == nil && !now.Stale)
	switch {
	case same && now.Undecryptable != nil && a.configured:
		in.unchecked(QuestionLost, string(now.Key), "%v", now.Undecryptable)
		return nil
	case same:
		return nil
	case encrypted && !stillEncrypted:
		in.found(codeInTheClear, string(now.Key), "it was encrypted at rest on the origin, and is not any more")
		return nil
	}
	value, err := a.decrypt(QuestionLost, a.archive.file, was.Key, was.Stored)
	switch {
	case err != nil:
		return err
	case now.Undecryptable != nil:
		in.unchecked(QuestionLost, string(now.Key), "%v", now.Undecryptable)
	case isLogicalCluster:
		a.compareLogicalCluster(value, now)
	case bytes.Equal(value, now.Value):
	case a.archive.isWorkspace(key) && a.onlyMoved(value, now.Value): // of a moved child
	default:
		in.found(codeRecordChanged, string(now.Key), "its value is not the archive's")
	}
	return nil
}

// compareLogicalCluster checks a LogicalCluster: an import removes the annotation of a live
// migration and may change the shard. All else is equal to the byte.
func (a *arrivals) compareLogicalCluster(was []byte, now *inspect.Entry) {
	in, key := a.destination.file, string(now.Key)
	want, err := dropMigrating(was)
	meta, metaErr := encoding.ReadMeta(now.Value)
	if err != nil || metaErr != nil {
		in.found(codeRecordChanged, key, "its value is not the archive's, and cannot be read")
		return
	}
	says := meta.Annotations[kcp.AnnotationShard]
	moved, err := moveLogicalCluster(want, says)
	switch _, migrating := meta.Annotations[kcp.AnnotationMigrating]; {
	case migrating:
		in.found(codeStillMigrating, key, "it has the annotation %s: kcp would answer no request for it",
			kcp.AnnotationMigrating)
	case bytes.Equal(now.Value, want):
	case err != nil || !bytes.Equal(now.Value, moved):
		in.found(codeRecordChanged, key, "more of it than an import changes is not the archive's")
	case a.To == "":
		in.unchecked(QuestionLost, key, "it says that it lives on a shard, and the file does not say what this one "+
			"is called; --as-shard says it")
	case says != a.To:
		in.found(codeShardMisnamed, key, "it says that it lives on %q, and this shard is %q", says, a.To)
	}
}

// compareWorkspace checks the Workspace of a logical cluster. An import may change the shard in the
// Workspace. stored is its value in the file in before the import.
func (c *checker) compareWorkspace(in *file, stored []byte, rec *snapshot.Record) error {
	was := &inspect.Entry{Key: rec.Key, Stored: stored}
	now, err := c.decrypt(QuestionTouched, c.destination.file, rec.Key, rec.Value)
	if err != nil {
		return err
	}
	if err := in.Decrypt(c.ctx, was); err != nil {
		return err
	}
	switch {
	case was.Undecryptable != nil:
		c.destination.unchecked(QuestionTouched, string(rec.Key), "%v", was.Undecryptable)
	case !c.onlyMoved(was.Value, now):
		c.destination.found(codeDestinationTouched, string(rec.Key),
			"at revision %d more of it was changed than where its logical cluster lives: on %q", rec.ModRevision, c.To)
	}
	return nil
}

// onlyMoved reports whether two values of a Workspace differ only in the shard, which is now the
// destination, and in its region.
func (c *checker) onlyMoved(was, now []byte) bool {
	before, beforeErr := encoding.ReadMeta(was)
	after, err := encoding.ReadMeta(now)
	if err != nil || beforeErr != nil {
		return false
	}
	region := after.Labels[kcp.LabelRegion]
	if region != before.Labels[kcp.LabelRegion] && !c.isRegion(region) {
		return false
	}
	want, err := moveWorkspace(was, cmp.Or(c.To, after.Annotations[kcp.AnnotationShard]), region)
	return err == nil && bytes.Equal(now, want)
}

// isRegion reports whether the destination may be in a region, by its Shard object.
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
		c.note("a Workspace names the region %q now, and no file has the Shard object %q, which tells its region "+
			"(--cache FILE)", region, c.To)
	}
	return !known
}

// checkOwners notes logical clusters that name the destination while their Workspaces do not: kcp
// corrects a Workspace only together with its LogicalCluster.
func (c *checker) checkOwners() error {
	destination, origin := newIndex(c.destination.File), newIndex(c.origin.File)
	for _, moved := range c.archive.manifest.Clusters {
		is := c.destination.shard.Cluster(moved.Name)
		if is == nil || is.Owner == nil || is.Owner.Resource != kcp.WorkspaceType.Resource || is.ShardName != c.To {
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
	return nil
}
