package verify

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// arrivals is one pass over the destination.
type arrivals struct {
	*checker
	leases map[int64]bool // that records of the logical clusters have
	// others counts the values of other logical clusters by how they are stored.
	others map[schema.GroupResource]*storedAs
}

type storedAs struct{ encrypted, clear int }

// checkDestination compares the logical clusters on the destination with the archive. Records above
// their first one are the import's: an output is its input with revisions on top.
func (c *checker) checkDestination() {
	a := arrivals{c, map[int64]bool{}, map[schema.GroupResource]*storedAs{}}
	for rec := range survey.Each(&c.Reading, c.destination.Snapshot().Scan(c.Ctx)) {
		a.add(rec)
	}
	for key, r := range c.archive.sorted() {
		if !r.seen && !r.definition {
			c.found(codeRecordLost, c.destination.file, c.to.Prefix+key, "the archive has it, the destination does not")
		}
		if n := a.others[r.key.Resource]; r.clear && n != nil && n.clear == 0 {
			c.found(codeInTheClear, c.destination.file, c.to.Prefix+key, "it is in the clear; all other %s of the destination, %d, are encrypted at rest",
				r.key.Resource, n.encrypted)
		}
	}
	a.checkShared()
}

// checkShared finds records of others that would expire with an imported lease.
func (a *arrivals) checkShared() {
	for rec := range survey.Each(&a.Reading, a.destination.Snapshot().Live(a.Ctx, nil)) {
		if !a.leases[rec.Lease] {
			continue
		}
		if key, _, err := a.destination.Layouts.Parse(rec.Key); err != nil || !a.arrived(key) {
			a.found(codeDestinationTouched, a.destination.file, string(rec.Key),
				"it is attached to lease %x, which came with what was moved: it would expire with that", uint64(rec.Lease))
		}
	}
}

// add checks one record; records come in revision order.
func (a *arrivals) add(rec snapshot.Scanned) {
	key, _, err := a.destination.Layouts.Parse(rec.Key)
	theirs := err == nil && key.Shard == "" && a.archive.moved[key.Cluster]
	switch {
	case theirs && rec.Live && key.Prefix != a.to.Prefix:
		a.found(codeElsewhere, a.destination.file, string(rec.Key), "it lies below the prefix %q, and %q was moved below %q", key.Prefix, key.Cluster,
			a.to.Prefix)
		return
	case err == nil && a.arrived(key):
		if rec.Live {
			a.imported = cmp.Or(a.imported, rec.Revision.Main)
			a.compare(key, rec.Record)
		}
		return
	case len(rec.Key) == 0:
		return
	case err == nil && rec.Tombstone && key.Shard != "" && a.isStale(key.Shard, key.Cluster):
		return // taken out of a cache in the same file; one that is left there is found as what it is
	case err == nil && rec.Live && a.isArrivedCopy(key):
		return // checkCopies compares it
	case err != nil || key.Shard != "" || key.Cluster == "":
		key = keys.Key{}
	case rec.Live && key.Prefix == a.to.Prefix && !a.isDefinition(rec.Key, key):
		if a.others[key.Resource] == nil {
			a.others[key.Resource] = &storedAs{}
		}
		if n := a.others[key.Resource]; survey.IsEncrypted(rec.Value) {
			n.encrypted++
		} else {
			n.clear++
		}
	}
	if a.imported != 0 {
		a.checkLater(key, rec)
	}
}

// arrived tells whether a key on the destination is that of a moved logical cluster.
func (c *checker) arrived(key keys.Key) bool {
	return key.Shard == "" && key.Prefix == c.to.Prefix && c.archive.moved[key.Cluster]
}

// isDefinition tells whether a key on the destination is that of a definition in the archive.
func (c *checker) isDefinition(stored []byte, key keys.Key) bool {
	if key.Resource != keys.DefinitionType() {
		return false
	}
	r := c.archive.records[string(stored[len(c.to.Prefix):])]
	return r != nil && r.definition
}

// isWorkspace tells whether a key is that of the Workspace of a moved logical cluster.
func (c *checker) isWorkspace(key keys.Key) bool {
	return key.Resource == clusters.WorkspaceType && c.archive.workspaces[[2]string{key.Cluster, key.Name}]
}

// compare checks a live record of a logical cluster.
func (a *arrivals) compare(key keys.Key, rec *snapshot.Record) {
	a.checked[QuestionLost]++
	was := a.archive.records[string(rec.Key[len(a.to.Prefix):])]
	if was == nil {
		a.found(codeRecordAdded, a.destination.file, string(rec.Key), "it is of logical cluster %q, and the archive does not have it", key.Cluster)
		return
	}
	was.seen = true
	after, granted := a.destination.leases[rec.Lease]
	switch before := a.archive.leases[was.Lease]; {
	case before != after:
		a.found(codeLeaseDiffers, a.destination.file, string(rec.Key), "its lease has a TTL of %d s (0: it has none), in the archive %d s", after, before)
	case rec.Lease != 0 && !granted:
		a.found(codeLeaseDiffers, a.destination.file, string(rec.Key),
			"it names lease %x, which the file does not have: it would expire with whoever is granted that", uint64(rec.Lease))
	case granted:
		a.leases[rec.Lease] = true
	}
	a.compareValue(key, was, &inspect.Entry{Key: rec.Key, Stored: rec.Value, Value: rec.Value})
}

// checkLater checks another record above the first imported one: an import writes definitions
// before its records, and Workspaces after them. key is empty for a record outside a shard.
func (a *arrivals) checkLater(key keys.Key, rec snapshot.Scanned) {
	what := "changed"
	switch {
	case rec.Tombstone:
		what = "deleted"
	case rec.CreateRevision == rec.ModRevision:
		what = "created"
	case a.isWorkspace(key):
		if was := a.before(rec.Key); was != nil {
			a.compareWorkspace(a.destination.file, was, rec.Record)
			return
		}
	}
	a.found(codeDestinationTouched, a.destination.file, string(rec.Key), "it was %s at revision %s, during the import or after it", what, rec.Revision)
}

// before returns the stored value that a key had before the import, nil for none.
func (a *arrivals) before(key []byte) (stored []byte) {
	for rec := range survey.Each(&a.Reading, a.destination.Snapshot().History(a.Ctx, key)) {
		if rec.Revision.Main >= a.imported {
			break
		}
		stored = rec.Value // nil for a deletion
	}
	return stored
}
