package transform

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ErrExists is returned by [View.Create] if the key has a record already.
var ErrExists = errors.New("the key is there already")

// Reader returns a reader of the input without staged changes.
func (v *overlay) Reader() *inspect.Reader { return v.reader }

// Secrets returns the redactor for the objects of the input: see inspect.Reader.Secrets.
func (v *overlay) Secrets(ctx context.Context) (*redact.Shared, error) { return v.reader.Secrets(ctx) }

// Create stages a new record. The value is encrypted as a server would, and attached to a lease of
// [View.Grant], or to no lease if lease is 0. The error is [ErrExists] if the file or the plan has
// the key.
func (v *View) Create(ctx context.Context, key, value []byte, lease int64) error {
	if len(value) == 0 {
		return fmt.Errorf("stage %q: the value must not be empty", key)
	}
	stored, err := v.encrypt(ctx, key, value)
	if err != nil {
		return err
	}
	return v.CreateStored(ctx, key, stored, lease)
}

// CreateStored is [View.Create] with the stored bytes of a server, from the same key.
func (v *View) CreateStored(ctx context.Context, key, stored []byte, lease int64) error {
	if len(key) == 0 {
		return errors.New("stage a record: the key must not be empty")
	}
	rec, err := v.src.Get(ctx, key)
	if err != nil {
		return err
	}
	st, err := v.plan.get(key)
	switch {
	case err != nil:
		return err
	case st != nil && !st.delete, st == nil && rec != nil:
		return fmt.Errorf("stage %q: %w", key, ErrExists)
	case rec != nil: // the deletion is staged
		return v.plan.put(key, stored, staged{prior: rec.ModRevision, lease: lease})
	}
	return v.plan.put(key, stored, staged{lease: lease})
}

// leases are the leases that a run grants.
type leases struct {
	file    *snapshot.Snapshot
	ids     map[int64]bool           // of file, of live records and of grants; nil until the first Grant
	grants  []snapshot.Lease         // staged, in order
	granted map[snapshot.Lease]int64 // new id by id and TTL in the other file
}

// Grant stages a lease of ttl seconds for the lease id of another file and returns the new id: id
// itself, if no lease and no live record has it, else an id derived from id. The same id and ttl
// return the same lease.
func (v *leases) Grant(ctx context.Context, id, ttl int64) (lease int64, err error) {
	if id <= 0 || ttl <= 0 {
		return 0, fmt.Errorf("a lease %x of %d seconds cannot be granted", uint64(id), ttl)
	}
	asked := snapshot.Lease{ID: id, TTL: ttl}
	if lease, granted := v.granted[asked]; granted {
		return lease, nil
	}
	if v.ids == nil {
		if v.ids, err = v.named(ctx); err != nil {
			return 0, err
		}
	}
	lease = id
	for n := 0; lease <= 0 || v.ids[lease]; n++ {
		lease = otherLease(id, n)
	}
	v.ids[lease] = true
	v.granted[asked] = lease
	v.grants = append(v.grants, snapshot.Lease{ID: lease, TTL: ttl})
	return lease, nil
}

// named returns the ids of the leases in the file, and the lease ids in live records. etcd attaches
// records to their leases at startup: an expiring lease would delete such a record.
func (v *leases) named(ctx context.Context) (map[int64]bool, error) {
	granted, err := v.file.Leases(ctx)
	if err != nil {
		return nil, err
	}
	named := make(map[int64]bool, len(granted))
	for id := range granted {
		named[id] = true
	}
	for rec, err := range v.file.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if rec.Lease != 0 {
			named[rec.Lease] = true
		}
	}
	return named, nil
}

// otherLease returns the nth candidate in place of a used id.
func otherLease(id int64, n int) int64 {
	b := binary.BigEndian.AppendUint64(nil, uint64(id))
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(n)))
	return int64(binary.BigEndian.Uint64(sum[:]) &^ (1 << 63))
}

// Revision returns the current revision of the output, including the changes staged so far.
func (v *overlay) Revision(ctx context.Context) (int64, error) {
	last, err := v.src.Revision(ctx)
	return last + int64(v.plan.planned), err
}
