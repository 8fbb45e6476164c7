package transform

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Output describes the output of a run. The zero value is a copy of the input with the staged
// changes on top.
type Output struct {
	// Anew means that the output has only new pages: no page of the input is copied during
	// planning.
	Anew bool
	// Compact removes history, including the history of the staged changes.
	Compact *snapshot.Compaction
	// Scrub selects keys; all records of these keys are removed, of any revision. Their deletions
	// are staged by [View.Delete] and leave no record.
	Scrub func(key []byte) bool
	// Build is the content of a new file. Build may include records of the input.
	Build *snapshot.Content
	// Plaintext stores all values staged afterwards unencrypted: the receiver has no key.
	Plaintext bool
	// NotForRestore omits the restore commands from the report: the output is not for a cluster.
	NotForRestore bool
	// Check reads the verified output before the output gets its name. An error of Check fails the
	// run. Check may add to the report.
	Check func(ctx context.Context, out *inspect.Reader) error
}

// Make sets properties of the output. Several calls add up: each compaction removes its selection,
// each scrub its keys, and all checks run, in the order of the calls.
func (v *View) Make(o Output) {
	if o.Check != nil {
		v.checks = append(v.checks, o.Check)
	}
	if o.Scrub != nil {
		v.scrubs = append(v.scrubs, o.Scrub)
	}
	if c := o.Compact; c != nil {
		if v.compact == nil {
			v.compact = new(*c)
		}
		v.compact.Keep = min(c.Keep, v.compact.Keep)
		v.compact.LiveOnly = c.LiveOnly || v.compact.LiveOnly
		v.compact.Disarm = c.Disarm || v.compact.Disarm
		v.compact.RecordsOnly = c.RecordsOnly || v.compact.RecordsOnly
	}
	if o.Build != nil {
		v.built = o.Build
	}
	v.plaintext, v.noUse = v.plaintext || o.Plaintext, v.noUse || o.NotForRestore
	if v.draft != nil && (o.Anew || o.Compact != nil || o.Scrub != nil || o.Build != nil) {
		v.draft.Stop()
	}
}

// Foresee begins to write the changes staged so far in the background, and to hash the output. A
// plan calls Foresee before a long pass that rarely stages another change; after another change the
// work is done again.
func Foresee(v *View) {
	if v.draft != nil && v.built == nil && v.compact == nil && v.scrubs == nil {
		edits, leases := v.plan.edits, len(v.grants)
		v.draft.Foresee(v.plan.changes(), v.grants, func() bool {
			return v.plan.edits == edits && len(v.grants) == leases
		})
	}
}

// CheckOutput runs the checks of an output.
func (v *View) CheckOutput(ctx context.Context, out *inspect.Reader) error {
	for _, check := range v.checks {
		if err := check(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// scrub returns the union of the scrubs; nil for none.
func (v *View) scrub() func(key []byte) bool {
	if len(v.scrubs) == 0 {
		return nil
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(v.scrubs, func(scrub func([]byte) bool) bool { return scrub(key) })
	}
}
