package transform

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Entry is the latest value of a key, as stored or as staged, decrypted.
type Entry = inspect.Entry

// overlay is the readable part of a View: a snapshot with staged changes on top.
type overlay struct {
	src           *snapshot.Snapshot
	reader        *inspect.Reader
	encrypter     Encrypter // nil without an encryption configuration
	plaintext     bool      // store values unencrypted: see Output
	plan          *plan
	prefixes      []string  // of Options
	undecryptable *sync.Map // why values cannot be decrypted: errors by key
}

// View is a snapshot with staged changes on top. Values are read and staged decrypted; staging
// encrypts a value under its own key. A View is not safe for concurrent use.
type View struct {
	*overlay
	*findings
	*leases
	time    time.Time
	draft   *snapshot.Draft         // of the output; nil for a dry run
	scrubs  []func(key []byte) bool // see Output
	compact *snapshot.Compaction    // nil for none
	built   *snapshot.Content       // nil for the input with changes
	noUse   bool                    // the output is not for a cluster
	here    []string                // members that the caller restores: see Options.Restores
	checks  []func(context.Context, *inspect.Reader) error
	budget  bounded.Budget
	gained  gained
}

// Budget limits the cost of schemas and rules of CustomResourceDefinitions for all objects of the
// run. A caller that checks many objects in parallel takes a meter for each; [View.PutObject] takes
// its own.
func (v *View) Budget() *bounded.Budget { return &v.budget }

// Live yields the latest value of each key that begins with prefix: first the keys of the file in
// revision order, with changes applied, then keys that are only staged, in the order of staging.
// Changes staged during the scan are visible at keys that the scan has not reached.
func (v *overlay) Live(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if _, err := v.reader.Layouts(ctx); err != nil { // parse the keys
			yield(nil, err)
			return
		}
		for rec, err := range v.src.Live(ctx, prefix) {
			e, found := new(Entry), false
			if err == nil {
				found, err = v.fill(ctx, rec, e)
			}
			if err == nil && !found {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		v.created(ctx, prefix)(yield)
	}
}

// created yields the entries of Live that are only staged.
func (v *overlay) created(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
	return stream.Of(func(yield func(*Entry) error) error {
		return stream.Each(v.plan.creating(prefix), func(st *staged) error {
			e, err := v.staged(ctx, st)
			if err != nil {
				return err
			}
			return yield(e)
		})
	})
}

// Get returns the latest value of key; nil for none.
func (v *overlay) Get(ctx context.Context, key []byte) (*Entry, error) {
	if e, planned, err := v.planned(ctx, key); planned || err != nil {
		return e, err
	}
	e, err := v.reader.Get(ctx, key)
	v.noteUndecryptable(e)
	return e, err
}

// planned returns the entry of a planned change, nil for a deletion. planned is false for a key
// without a planned change.
func (v *overlay) planned(ctx context.Context, key []byte) (e *Entry, planned bool, err error) {
	v.plan.mu.RLock()
	defer v.plan.mu.RUnlock()
	st, err := v.plan.get(key)
	if st == nil || err != nil {
		return nil, false, err
	}
	e, err = v.staged(ctx, st)
	return e, true, err
}

// fill sets e to the entry of a stored record. found is false if the deletion of the record is
// staged.
func (v *overlay) fill(ctx context.Context, rec *snapshot.Record, e *Entry) (found bool, err error) {
	if staged, planned, err := v.planned(ctx, rec.Key); planned || err != nil {
		if staged != nil {
			*e = *staged
		}
		return staged != nil, err
	}
	err = v.reader.Read(ctx, rec, e)
	v.noteUndecryptable(e)
	return true, err
}

// staged returns the entry of a staged change; nil for a deletion.
func (v *overlay) staged(ctx context.Context, st *staged) (*Entry, error) {
	if st.delete {
		return nil, nil
	}
	key, value, err := v.plan.record(st)
	if err != nil {
		return nil, err
	}
	e := &Entry{Key: key, Stored: value, ModRevision: st.prior, Lease: st.lease}
	return e, v.reader.Decrypt(ctx, e)
}

// Layouts returns the storage prefixes of [Options] and the prefixes that keys show, of any layout.
func (v *overlay) Layouts(ctx context.Context) (keys.Layouts, error) { return v.reader.Layouts(ctx) }

// Time returns the time for new objects: the time of [Options], else the newest creationTimestamp
// in the snapshot, found by a scan in the first call; never the clock.
func (v *View) Time(ctx context.Context) (time.Time, error) {
	if !v.time.IsZero() {
		return v.time, nil
	}
	for e, err := range v.reader.Live(ctx, nil) {
		if err != nil {
			return time.Time{}, err
		}
		// a value that is not an object has no time
		if m, err := encoding.ReadMeta(e.Value); err == nil && m.CreationTimestamp.After(v.time) {
			v.time = m.CreationTimestamp
		}
	}
	return v.time, nil
}

// InputDigest returns the SHA-256 of the input's image, a seed for UIDs that are the same in each
// run. InputDigest waits for the pass over the input.
func (v *overlay) InputDigest(ctx context.Context) ([32]byte, error) {
	d, err := v.src.Digest(ctx)
	return d.Image, err
}
