package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// entries calls fn with every entry of the named bucket; a missing bucket has none.
func (s *Snapshot) entries(ctx context.Context, bucket string, fn func(k, v []byte) error) error {
	return s.read(func() error {
		return stream.Each(s.db.Entries(ctx, s.db.Bucket(bucket)), func(el bolt.Element) error { return fn(el.Key, el.Value) })
	})
}

// Leases returns the time to live of each lease, in seconds, by its id. After a restore each begins
// anew.
func (s *Snapshot) Leases(ctx context.Context) (map[int64]int64, error) {
	leases := map[int64]int64{}
	err := s.entries(ctx, leaseBucket, func(k, v []byte) error {
		if err := checkEntry(leaseBucket, k, v); err != nil && !errors.Is(err, errOdd) {
			return err
		}
		id, err := varintField(v, fieldLeaseID) // a server does not look at the entry's key
		if err != nil {
			return err
		}
		seconds, err := varintField(v, fieldLeaseTTL)
		leases[int64(id)] = int64(seconds)
		return err
	})
	return leases, err
}

// statusOf is the part of Status that a bucket tells.
func (s *Snapshot) statusOf(ctx context.Context, bucket string) (st Status, err error) {
	err = s.entries(ctx, bucket, func(k, v []byte) error { return st.add(bucket, k, v) })
	return st, err
}

// Alarms returns the alarms that the file holds, one an entry. A restore keeps them.
func (s *Snapshot) Alarms(ctx context.Context) ([]Raised, error) {
	st, err := s.statusOf(ctx, "alarm")
	return st.Alarms, err
}

// AuthEnabled is whether clients of a restored server need a user of etcd.
func (s *Snapshot) AuthEnabled(ctx context.Context) (bool, error) {
	st, err := s.statusOf(ctx, "auth")
	return st.AuthEnabled, err
}

// Members returns the members in the file, by ID. A file of etcd 3.4 may have none.
func (s *Snapshot) Members(ctx context.Context) ([]Member, error) {
	st, err := s.statusOf(ctx, "members")
	return st.Members, err
}

// Note returns the note of that name, nil if there is none. Notes come from [Build] and outlast a
// restore and a Write.
func (s *Snapshot) Note(ctx context.Context, name string) (note []byte, err error) {
	err = s.entries(ctx, noteBucket, func(k, v []byte) error {
		if string(k) != name {
			return nil
		}
		if len(v) > maxNote {
			return fmt.Errorf("%w: note %q has %d bytes", ErrDamaged, name, len(v))
		}
		note = append([]byte{}, v...)
		return nil
	})
	return note, err
}
