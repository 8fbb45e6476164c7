package verify

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// arrivals is one pass over the destination.
type arrivals struct {
	*judge
	layouts keys.Layouts
	ttl     map[int64]int64 // of the archive's leases
	newTTL  map[int64]int64 // of the destination's
	leases  map[int64]bool  // that records of the logical clusters have
	// others counts the values of others by how they are stored.
	others map[schema.GroupResource]storedAs
}

type storedAs struct{ encrypted, clear int }

// judgeDestination compares what lives in the logical clusters on the destination with the archive. The records above the first of
// theirs are the import's, an output of etcdshift being its input with revisions on top; those below it can be told from others only
// by what the import was given.
func (j *judge) judgeDestination(ctx context.Context) (err error) {
	a := arrivals{judge: j, leases: map[int64]bool{}, others: map[schema.GroupResource]storedAs{}}
	if a.layouts, err = j.DestinationOut.Layouts(ctx); err != nil {
		return err
	}
	if a.ttl, err = j.Archive.Snapshot().Leases(ctx); err != nil {
		return err
	}
	if a.newTTL, err = j.DestinationOut.Snapshot().Leases(ctx); err != nil {
		return err
	}
	for rec, err := range j.DestinationOut.Snapshot().Scan(ctx) {
		if err != nil {
			return err
		}
		if err := a.add(ctx, rec); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.archived)) {
		if r := j.archived[key]; !r.seen && !r.definition {
			j.found(CodeRecordLost, j.DestinationOut, []byte(j.to.Prefix+key), "the archive has it, the destination does not")
		}
	}
	a.judgeClear()
	return a.judgeShared(ctx)
}

// judgeClear finds what came in the clear and would have been encrypted here: all other values of the resource are.
func (a *arrivals) judgeClear() {
	for _, key := range slices.Sorted(maps.Keys(a.archived)) {
		r := a.archived[key]
		if n := a.others[r.place.Resource]; r.clear && n.clear == 0 && n.encrypted > 0 {
			a.found(CodeInTheClear, a.DestinationOut, []byte(a.to.Prefix+key), "it is in the clear; all other %s of the destination, %d, are encrypted at rest",
				r.place.Resource, n.encrypted)
		}
	}
}

// judgeShared finds records of others that are attached to a lease which came with the logical clusters: an import grants each anew,
// and who named that one before, in vain, would expire with it.
func (a *arrivals) judgeShared(ctx context.Context) error {
	if len(a.leases) == 0 {
		return nil
	}
	for rec, err := range a.DestinationOut.Snapshot().Live(ctx, nil) {
		if err != nil {
			return err
		}
		if !a.leases[rec.Lease] {
			continue
		}
		place, _, err := a.layouts.Parse(rec.Key)
		if err != nil || place.Shard != "" || place.Prefix != a.to.Prefix || !a.moved[place.Cluster] {
			a.found(CodeDestinationTouched, a.DestinationOut, rec.Key, "it is attached to lease %x, which came with what was moved: it would expire with that", uint64(rec.Lease))
		}
	}
	return nil
}

// workspacePlace is a Workspace's key, whatever the identity of its APIExport and the storage prefix.
func workspacePlace(cluster, name string) keys.Key {
	return keys.Key{Resource: clusters.WorkspaceType(), Cluster: cluster, Name: name}
}

// add judges one record; they come in revision order.
func (a *arrivals) add(ctx context.Context, rec snapshot.Scanned) error {
	storage, ok := a.layouts.Of(rec.Key)
	var place keys.Key
	if ok {
		var err error
		if place, err = storage.Layout.Parse(rec.Key); err != nil {
			ok = false
		}
	}
	theirs := ok && storage.Flavour == keys.FlavourKCPShard && a.moved[place.Cluster]
	switch {
	case theirs && rec.Live && storage.Prefix != a.to.Prefix:
		a.found(CodeElsewhere, a.DestinationOut, rec.Key, "it lies below the prefix %q, and %q was moved below %q", storage.Prefix, place.Cluster, a.to.Prefix)
		return nil
	case theirs && storage.Prefix == a.to.Prefix:
		if !rec.Live {
			return nil
		}
		if a.first == 0 {
			a.first = rec.Revision.Main
		}
		return a.compare(ctx, place, rec.Record)
	case len(rec.Key) == 0:
		return nil
	case ok && rec.Tombstone && place.Shard != "" && a.isStale(place.Shard, place.Cluster):
		return nil // taken out of a cache in the same file; one that is left there is found as what it is
	case ok && rec.Live && a.isArrivedCopy(place):
		return nil // judgeCopies compares it
	case !ok || storage.Flavour != keys.FlavourKCPShard:
		place = keys.Key{}
	case rec.Live && storage.Prefix == a.to.Prefix && !a.isDefinition(rec.Key, place):
		a.count(place, rec.Record)
	}
	if a.first == 0 {
		return nil
	}
	return a.judgeLater(ctx, place, rec)
}

func (a *arrivals) count(place keys.Key, rec *snapshot.Record) {
	n := a.others[place.Resource]
	if _, encrypted := encoding.Encryption(rec.Value); encrypted {
		n.encrypted++
	} else {
		n.clear++
	}
	a.others[place.Resource] = n
}

// isDefinition tells whether a key of the destination's storage is that of a definition that the archive holds.
func (j *judge) isDefinition(key []byte, place keys.Key) bool {
	if place.Resource != clusters.DefinitionType() {
		return false
	}
	kept := j.archived[string(key[len(j.to.Prefix):])]
	return kept != nil && kept.definition
}

// isWorkspace tells whether a key is that of the Workspace of one of the logical clusters.
func (j *judge) isWorkspace(place keys.Key) bool {
	return place.Resource == clusters.WorkspaceType() && j.workspaces[workspacePlace(place.Cluster, place.Name)]
}

// compare judges a record that lives in one of the logical clusters.
func (a *arrivals) compare(ctx context.Context, place keys.Key, rec *snapshot.Record) error {
	a.checked[QuestionLost]++
	was := a.archived[string(rec.Key[len(a.to.Prefix):])]
	if was == nil {
		a.found(CodeRecordAdded, a.DestinationOut, rec.Key, "it is of logical cluster %q, and the archive does not have it", place.Cluster)
		return nil
	}
	was.seen = true
	_, granted := a.newTTL[rec.Lease]
	switch before, after := a.ttl[was.entry.Lease], a.newTTL[rec.Lease]; {
	case before != after:
		a.found(CodeLeaseDiffers, a.DestinationOut, rec.Key, "its lease has a TTL of %d s (0: it has none), in the archive %d s", after, before)
	case rec.Lease != 0 && !granted:
		a.found(CodeLeaseDiffers, a.DestinationOut, rec.Key, "it names lease %x, which the file does not have: it would expire with whoever is granted that", uint64(rec.Lease))
	case granted:
		a.leases[rec.Lease] = true
	}
	return a.compareValue(ctx, place, was, &inspect.Entry{Key: rec.Key, Stored: rec.Value, Value: rec.Value})
}

// compareValue judges the value of a record that the archive has. The same bytes under the same key are the same value, whoever can
// open it; a LogicalCluster is read all the same, as the same may still be wrong.
func (j *judge) compareValue(ctx context.Context, place keys.Key, was *kept, now *inspect.Entry) error {
	_, encrypted := encoding.Encryption(was.entry.Stored)
	same := bytes.Equal(was.entry.Stored, now.Stored) && (!encrypted || bytes.Equal(was.entry.Key, now.Key)) && !isLogicalCluster(place)
	if same && encrypted && !j.Configured {
		return nil
	}
	if err := j.DestinationOut.Open(ctx, now); err != nil {
		return err
	}
	_, stillEncrypted := encoding.Encryption(now.Stored)
	was.clear = !stillEncrypted && !(j.Configured && now.Sealed == nil && !now.Stale)
	if same {
		if now.Sealed != nil && j.Configured {
			j.unjudged(QuestionLost, j.DestinationOut, now.Key, now.Sealed.Error())
		}
		return nil
	}
	if err := j.Archive.Open(ctx, was.entry); err != nil {
		return err
	}
	switch {
	case encrypted && !stillEncrypted:
		j.found(CodeInTheClear, j.DestinationOut, now.Key, "it was encrypted at rest on the origin, and is not any more")
		return nil
	case was.entry.Sealed != nil:
		j.unjudged(QuestionLost, j.Archive, was.entry.Key, was.entry.Sealed.Error())
		return nil
	case now.Sealed != nil:
		j.unjudged(QuestionLost, j.DestinationOut, now.Key, now.Sealed.Error())
		return nil
	case isLogicalCluster(place):
		return j.compareLogicalCluster(was.entry.Value, now)
	case bytes.Equal(was.entry.Value, now.Value):
		return nil
	case j.isWorkspace(place) && j.onlyMoved(was.entry.Value, now.Value):
		return nil // of a child that came along
	}
	j.found(CodeRecordChanged, j.DestinationOut, now.Key, "its value is not the archive's")
	return nil
}

// judgeLater judges a record of something else that was written after the first of the logical clusters: an import writes definitions
// before those, and Workspaces behind them. place is empty for a key that is not of the destination's storage.
func (a *arrivals) judgeLater(ctx context.Context, place keys.Key, rec snapshot.Scanned) error {
	what := "changed"
	switch {
	case rec.Tombstone:
		what = "deleted"
	case rec.CreateRevision == rec.ModRevision:
		what = "created"
	case a.isWorkspace(place):
		was, err := a.before(ctx, rec.Key)
		if err != nil || was != nil {
			if err == nil {
				err = a.compareWorkspace(ctx, was, rec.Record)
			}
			return err
		}
	}
	a.found(CodeDestinationTouched, a.DestinationOut, rec.Key, "it was %s at revision %s, during the import or after it", what, rec.Revision)
	return nil
}

// before is what a key was before the import, opened; nil for nothing.
func (a *arrivals) before(ctx context.Context, key []byte) (*inspect.Entry, error) {
	var value []byte
	for rec, err := range a.DestinationOut.Snapshot().History(ctx, key) {
		if err != nil {
			return nil, err
		}
		if rec.Revision.Main >= a.first {
			break
		}
		value = rec.Value // nil for a deletion
	}
	if value == nil {
		return nil, nil
	}
	e := &inspect.Entry{Key: key, Stored: value}
	return e, a.DestinationOut.Open(ctx, e)
}
