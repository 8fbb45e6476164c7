package verify

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// checkRests compares all other records with the inputs of the commands that are given.
func (c *checker) checkRests(ctx context.Context) error {
	if c.destination.before == nil {
		c.note("of %s only what was written during the import and after it was checked; --destination FILE compares all other records and leases",
			c.destination.path)
	} else if err := c.compareDestination(ctx); err != nil {
		return err
	}
	if c.origin.before == nil {
		c.note("leases of others in %s were compared by their ids, and not by their TTLs; --origin FILE compares both", c.origin.path)
	}
	c.compareLeases(codeOriginTouched, c.origin)
	c.compareLeases(codeDestinationTouched, c.destination)
	return nil
}

// compareDestination compares all records that were there before the import.
func (c *checker) compareDestination(ctx context.Context) error {
	skip := func(stored []byte) bool {
		key, _, err := c.destination.Layouts.Parse(stored)
		// Copies may leave a cache of the shard's own etcd, or move there: checkCopies compares
		// them.
		copied := key.Shard != "" && (c.isStale(key.Shard, key.Cluster) || c.isArrivedCopy(key))
		return err == nil && (copied || c.arrived(key))
	}
	return (&comparison{checker: c, code: codeDestinationTouched, out: c.destination, skip: skip, allowed: c.importChanges}).run(ctx)
}

// importChanges checks another record, and tells whether an import may change or create it.
func (c *checker) importChanges(ctx context.Context, was, now *snapshot.Record) (bool, error) {
	key, _, err := c.destination.Layouts.Parse(now.Key)
	switch {
	case err != nil || key.Shard != "":
		return false, nil
	case was != nil && c.isWorkspace(key): // the parent may lie below another prefix of the file
		before := &inspect.Entry{Key: was.Key, Stored: was.Value}
		if err := c.destination.before.Decrypt(ctx, before); err != nil {
			return false, err
		}
		return true, c.compareWorkspace(ctx, before, now)
	case key.Prefix != c.to.Prefix || !c.isDefinition(now.Key, key):
		return false, nil
	case was == nil:
		return true, nil // checkDefinitions has checked it
	}
	return c.importedDefinition(ctx, was, now)
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

// comparison finds every live record in which a file and the input of its command differ.
type comparison struct {
	*checker
	code *finding.Code
	out  *output
	skip func(key []byte) bool
	// allowed checks a changed record, or a new one where was is nil, and tells whether it may
	// differ; nil allows none.
	allowed func(ctx context.Context, was, now *snapshot.Record) (bool, error)
}

func (c *comparison) run(ctx context.Context) error {
	err := c.each(ctx, c.out.before, c.out.file, func(was, now *snapshot.Record) error {
		switch {
		case now == nil:
			c.found(c.code, c.out.file, string(was.Key), "it is gone; %s has it", c.out.before.path)
		case !equalRecords(was, now):
			return c.changed(ctx, was, now, "it is not as %s has it")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.each(ctx, c.out.file, c.out.before, func(now, was *snapshot.Record) error {
		c.checked[QuestionTouched]++
		if was != nil {
			return nil
		}
		return c.changed(ctx, nil, now, "it is new; %s does not have it")
	})
}

// each calls compare with each live record of in that is not skipped, and with the record of other
// under the same key, nil for none.
func (c *comparison) each(ctx context.Context, in, other *file, compare func(one, of *snapshot.Record) error) error {
	for rec, err := range in.Snapshot().Live(ctx, nil) {
		if err != nil {
			return err
		}
		if c.skip(rec.Key) {
			continue
		}
		of, err := other.Snapshot().Get(ctx, rec.Key)
		if err == nil {
			err = compare(rec, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func equalRecords(a, b *snapshot.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease
}

func (c *comparison) changed(ctx context.Context, was, now *snapshot.Record, what string) error {
	if c.allowed != nil {
		if ok, err := c.allowed(ctx, was, now); ok || err != nil {
			return err
		}
	}
	c.found(c.code, c.out.file, string(now.Key), what, c.out.before.path)
	return nil
}
