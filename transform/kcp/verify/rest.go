package verify

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// judgeRests compares with what the commands were given, where that is at hand.
func (j *judge) judgeRests(ctx context.Context) error {
	if j.Destination == nil {
		j.note("of %s only what was written during the import and after it was judged; --destination FILE compares all other records and leases", pathOf(j.DestinationOut))
	} else if err := j.compareDestination(ctx); err != nil {
		return err
	}
	if j.Origin == nil {
		j.note("leases of others in %s were compared by their ids, and not by their TTLs; --origin FILE compares both", pathOf(j.OriginOut))
	}
	if err := j.compareLeases(ctx, CodeOriginTouched, j.Origin, j.OriginOut); err != nil {
		return err
	}
	return j.compareLeases(ctx, CodeDestinationTouched, j.Destination, j.DestinationOut)
}

// compareDestination compares all that was there before the import.
func (j *judge) compareDestination(ctx context.Context) error {
	layouts, err := j.DestinationOut.Layouts(ctx)
	if err != nil {
		return err
	}
	theirs := survey.NewSelection(layouts)
	for name := range j.moved {
		theirs.Add(survey.Place{Prefix: j.to.Prefix, Cluster: name})
	}
	skip := func(key []byte) bool {
		if theirs.Has(key) {
			return true
		}
		at, _, err := layouts.Parse(key)
		// To go from the cache of a shard's own etcd is right, and to move there; judgeCopies compares what moved.
		return err == nil && at.Shard != "" && (j.isStale(at.Shard, at.Cluster) || j.isArrivedCopy(at))
	}
	c := comparison{judge: j, code: CodeDestinationTouched, in: j.Destination, out: j.DestinationOut, skip: skip, allowed: j.importChanges}
	return c.run(ctx)
}

// importChanges tells whether a record of something else is one that an import writes, and judges it.
func (j *judge) importChanges(ctx context.Context, was, now *snapshot.Record) (bool, error) {
	layouts, err := j.DestinationOut.Layouts(ctx)
	if err != nil {
		return false, err
	}
	place, _, err := layouts.Parse(now.Key)
	switch {
	case err != nil || place.Shard != "":
		return false, nil
	case was != nil && j.isWorkspace(place): // the parent may lie below another prefix of the file
		before := &inspect.Entry{Key: was.Key, Stored: was.Value}
		if err := j.Destination.Open(ctx, before); err != nil {
			return false, err
		}
		return true, j.compareWorkspace(ctx, before, now)
	case place.Prefix != j.to.Prefix || !j.isDefinition(now.Key, place):
		return false, nil
	case was == nil:
		return true, nil // judgeDefinitions has judged it
	}
	return j.importedDefinition(ctx, was, now)
}

// compareLeases finds leases that are gone or have another TTL. in is nil where it is not at hand.
func (j *judge) compareLeases(ctx context.Context, code Code, in, out *inspect.Reader) error {
	if in == nil {
		return nil
	}
	was, err := in.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	is, err := out.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if is[id] != was[id] {
			j.found(code, out, nil, "lease %x has a TTL of %d s (0: it is gone), and had %d s", uint64(id), is[id], was[id])
		}
	}
	return nil
}

// comparison finds every live record that is in one of two files and not, to the last detail, in the other.
type comparison struct {
	*judge
	code    Code
	in, out *inspect.Reader
	skip    func(key []byte) bool
	// allowed judges a record that is another than it was, or new where was is nil; nil where nothing may be.
	allowed func(ctx context.Context, was, now *snapshot.Record) (bool, error)
}

// run goes through both files side by side: records that nobody touched are at their old revisions in both.
func (c *comparison) run(ctx context.Context) error {
	was, stop := iter.Pull2(c.others(ctx, c.in))
	defer stop()
	is, stop := iter.Pull2(c.others(ctx, c.out))
	defer stop()
	a, err, okA := was()
	if err != nil {
		return err
	}
	b, err, okB := is()
	for (okA || okB) && err == nil {
		order := inOrder(a, b, okA, okB)
		same := order == 0 && equalRecords(a, b)
		if order <= 0 && !same {
			err = c.gone(ctx, a)
		}
		if order >= 0 && !same && err == nil {
			err = c.fresh(ctx, b)
		}
		if order <= 0 && err == nil {
			a, err, okA = was()
		}
		if order >= 0 && err == nil {
			c.checked[QuestionTouched]++
			b, err, okB = is()
		}
	}
	return err
}

// others are the live records but those of skip.
func (c *comparison) others(ctx context.Context, r *inspect.Reader) iter.Seq2[*snapshot.Record, error] {
	return func(yield func(*snapshot.Record, error) bool) {
		for rec, err := range r.Snapshot().Live(ctx, nil) {
			if err == nil && c.skip(rec.Key) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// inOrder says which of two records comes first; one that is not there comes last.
func inOrder(a, b *snapshot.Record, okA, okB bool) int {
	switch {
	case !okA:
		return 1
	case !okB:
		return -1
	}
	return a.Revision.Compare(b.Revision)
}

func equalRecords(a, b *snapshot.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease
}

// gone judges a record that the output does not have as it was.
func (c *comparison) gone(ctx context.Context, was *snapshot.Record) error {
	now, err := c.out.Snapshot().Get(ctx, was.Key)
	if err != nil {
		return err
	}
	if now == nil {
		c.found(c.code, c.out, was.Key, "it is gone; %s has it", pathOf(c.in))
		return nil
	}
	return c.changed(ctx, was, now)
}

func (c *comparison) changed(ctx context.Context, was, now *snapshot.Record) error {
	if c.allowed != nil {
		if ok, err := c.allowed(ctx, was, now); ok || err != nil {
			return err
		}
	}
	what := "it is new; %s does not have it"
	if was != nil {
		what = "it is not as %s has it"
	}
	c.found(c.code, c.out, now.Key, what, pathOf(c.in))
	return nil
}

// fresh judges a record that the input does not have as it is.
func (c *comparison) fresh(ctx context.Context, now *snapshot.Record) error {
	was, err := c.in.Snapshot().Get(ctx, now.Key)
	if was != nil || err != nil {
		return err // gone has judged it
	}
	return c.changed(ctx, nil, now)
}
