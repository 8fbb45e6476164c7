package verify

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// checkRests compares with what the commands were given, where that is at hand.
func (c *checker) checkRests(ctx context.Context) error {
	if c.destination.before == nil {
		c.note("of %s only what was written during the import and after it was checked; --destination FILE compares all other records and leases", c.destination.path)
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

// compareDestination compares all that was there before the import.
func (c *checker) compareDestination(ctx context.Context) error {
	theirs := survey.NewSelection(c.destination.Layouts)
	for name := range c.archive.moved {
		theirs.Add(survey.Place{Prefix: c.to.Prefix, Cluster: name})
	}
	skip := func(stored []byte) bool {
		if theirs.Has(stored) {
			return true
		}
		key, _, err := c.destination.Layouts.Parse(stored)
		// To go from the cache of a shard's own etcd is right, and to move there; checkCopies compares what moved.
		return err == nil && key.Shard != "" && (c.isStale(key.Shard, key.Cluster) || c.isArrivedCopy(key))
	}
	return (&comparison{checker: c, code: codeDestinationTouched, out: c.destination, skip: skip, allowed: c.importChanges}).run(ctx)
}

// importChanges tells whether a record of something else is one that an import writes, and checks it.
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

// compareLeases finds leases that are gone or have another TTL than what the command was given, where that is at hand.
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

// comparison finds every live record that a file has and the input of its command has not, to the last detail, or the other way round.
type comparison struct {
	*checker
	code *finding.Code
	out  *output
	skip func(key []byte) bool
	// allowed checks a record that is another than it was, or new where was is nil; nil where nothing may be.
	allowed func(ctx context.Context, was, now *snapshot.Record) (bool, error)
}

func (c *comparison) run(ctx context.Context) error {
	for was, err := range c.others(ctx, c.out.before) {
		if err != nil {
			return err
		}
		now, err := c.out.Snapshot().Get(ctx, was.Key)
		switch {
		case err != nil:
			return err
		case now == nil:
			c.found(c.code, c.out.file, string(was.Key), "it is gone; %s has it", c.out.before.path)
		case !equalRecords(was, now):
			if err := c.changed(ctx, was, now, "it is not as %s has it"); err != nil {
				return err
			}
		}
	}
	for now, err := range c.others(ctx, c.out.file) {
		if err != nil {
			return err
		}
		c.checked[QuestionTouched]++
		was, err := c.out.before.Snapshot().Get(ctx, now.Key)
		if err == nil && was == nil {
			err = c.changed(ctx, nil, now, "it is new; %s does not have it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// others are the live records but those of skip.
func (c *comparison) others(ctx context.Context, in *file) iter.Seq2[*snapshot.Record, error] {
	return func(yield func(*snapshot.Record, error) bool) {
		for rec, err := range in.Snapshot().Live(ctx, nil) {
			if (err != nil || !c.skip(rec.Key)) && !yield(rec, err) {
				return
			}
		}
	}
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
