package verify

import (
	"bytes"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/snapshot"
)

// checkRests compares all other records with the inputs of the commands that are given.
func (c *checker) checkRests() {
	if c.destination.before == nil {
		c.note("of %s only what was written during the import and after it was checked; --destination FILE compares all other records and leases",
			c.destination.path)
	} else {
		c.compareDestination()
	}
	if c.origin.before == nil {
		c.note("leases of others in %s were compared by their ids, and not by their TTLs; --origin FILE compares both", c.origin.path)
	}
	c.compareLeases(codeOriginTouched, c.origin)
	c.compareLeases(codeDestinationTouched, c.destination)
}

// compareDestination compares all records that were there before the import.
func (c *checker) compareDestination() {
	skip := func(stored []byte) bool {
		key, _, err := c.destination.Layouts.Parse(stored)
		// Copies may leave a cache of the shard's own etcd, or move there: checkCopies compares
		// them.
		copied := key.Shard != "" && (c.isStale(key.Shard, key.Cluster) || c.isArrivedCopy(key))
		return err == nil && (copied || c.arrived(key))
	}
	c.compareRecords(codeDestinationTouched, c.destination, skip, c.importChanges)
}

// importChanges checks another record, and tells whether an import may change or create it.
func (c *checker) importChanges(was, now *snapshot.Record) bool {
	key, _, err := c.destination.Layouts.Parse(now.Key)
	switch {
	case err != nil || key.Shard != "":
		return false
	case was != nil && c.isWorkspace(key): // the parent may lie below another prefix of the file
		c.compareWorkspace(c.destination.before, was.Value, now)
		return true
	case key.Prefix != c.to.Prefix || !c.isDefinition(now.Key, key):
		return false
	}
	return was == nil || c.importedDefinition(was, now) // checkDefinitions has checked a new one
}

func (c *checker) compareLeases(code *finding.Code, out *output) {
	if out.before == nil {
		return
	}
	was, is := out.before.leases, out.leases
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if is[id] != was[id] {
			c.found(code, out.file, "", "lease %x has a TTL of %d s (0: it is gone), and had %d s", uint64(id), is[id], was[id])
		}
	}
}

// compareRecords finds every live record in which a file and the input of its command differ, but
// for skipped keys. allowed checks a changed record, or a new one where was is nil, and tells
// whether it may differ; nil allows none.
func (c *checker) compareRecords(code *finding.Code, out *output, skip func(key []byte) bool, allowed func(was, now *snapshot.Record) bool) {
	for was := range survey.Each(&c.Reading, out.before.Snapshot().Live(c.Ctx, nil)) {
		if !skip(was.Key) && c.get(out.file, was.Key) == nil {
			c.found(code, out.file, string(was.Key), "it is gone; %s has it", out.before.path)
		}
	}
	for now := range survey.Each(&c.Reading, out.Snapshot().Live(c.Ctx, nil)) {
		if skip(now.Key) {
			continue
		}
		c.checked[QuestionTouched]++
		was, what := c.get(out.before, now.Key), "it is not as %s has it"
		if was == nil {
			what = "it is new; %s does not have it"
		}
		if (was == nil || !equalRecords(was, now)) && (allowed == nil || !allowed(was, now)) {
			c.found(code, out.file, string(now.Key), what, out.before.path)
		}
	}
}

func equalRecords(a, b *snapshot.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease
}
