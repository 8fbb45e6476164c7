package snapshot

import (
	"context"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// replayOn returns a replay of a log on s, which is nil for an empty store; see replay.New.
func replayOn(
	ctx context.Context, s *Snapshot, log *wal.Log, most int64, emit func(*Record) error,
) (*replay.Replay, error) {
	store := &replay.Store{Revision: 1}
	if s != nil {
		var err error
		if store, err = storeOf(ctx, s); err != nil {
			return nil, err
		}
	}
	return replay.New(log, store, most, emit)
}

// storeOf returns the store of s, for a replay.
func storeOf(ctx context.Context, s *Snapshot) (*replay.Store, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	store := &replay.Store{Revision: x.revision(), Compacted: x.compacted(), Version: st.ClusterVersion,
		Auth: st.AuthEnabled, Keys: &liveKeys{index: x, from: s}}
	err = s.entries(ctx, mvcc.LeaseBucket, func(_, v []byte) error {
		l, err := mvcc.ParseLease(v)
		store.Leases = append(store.Leases, l)
		return err
	})
	if err != nil {
		return nil, err
	}
	return store, s.entries(ctx, "alarm", func(k, _ []byte) error {
		a, err := mvcc.ParseAlarm(k)
		store.Alarms = append(store.Alarms, a)
		return err
	})
}

// liveKeys are the live keys of a snapshot, for a replay.
type liveKeys struct {
	*index
	from   *Snapshot
	sorted *Sorted // nil until needed
}

// Find sets rec to the live record of a key.
func (k *liveKeys) Find(key []byte, rec *Record) (ordinal uint32, found bool, err error) {
	ordinal, found, err = k.find(key, rec)
	return ordinal, found && !rec.Tombstone, err
}

// At sets rec to the record with an ordinal.
func (k *liveKeys) At(ordinal uint32, rec *Record) error {
	return k.read(func() error { return k.at(ordinal, rec) })
}

// From calls fn with the live records from key on, in key order, while more is true.
func (k *liveKeys) From(
	ctx context.Context, key []byte, fn func(rec *Record, ordinal uint32) (more bool, err error),
) (err error) {
	if k.sorted == nil {
		if k.sorted, err = k.from.Sorted(ctx, nil, k.revision()); err != nil {
			return err
		}
	}
	at, err := k.sorted.Search(key)
	for more := true; more && err == nil && at < k.sorted.Len(); at++ {
		var rec *Record
		if rec, err = k.sorted.At(at); err == nil {
			more, err = fn(rec, k.sorted.ordinals[at])
		}
	}
	return err
}

// Leased calls fn with the live records that have a lease.
func (k *liveKeys) Leased(ctx context.Context, fn func(rec *Record, ordinal uint32)) error {
	return k.scan(ctx, k.live.has, func(rec Scanned) error {
		if rec.Lease != 0 {
			fn(rec.Record, rec.ordinal)
		}
		return nil
	})
}
