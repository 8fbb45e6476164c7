package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/btree"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// ErrRefused is returned for an entry of the log with an effect that depends on more than the
// log and the database.
var ErrRefused = finding.WithLasting(fmt.Errorf("the log cannot be replayed"),
	"start etcd on a copy of the data directory, and save a snapshot of it; or give the file member/snap/db, which "+
		"is the database without the latest writes")

// errRequest is returned for a request that no server accepts.
var errRequest = errors.New("not a request of etcd")

// Store is the store before the first entry of a log.
type Store struct {
	Revision  int64 // 1 if it is empty
	Compacted int64 // the compact revision
	Version   string
	Leases    []mvcc.Lease
	Alarms    []mvcc.Alarm
	Auth      bool // authentication is enabled
	Keys      Keys // nil for none
}

// Keys are the live keys of a store, each with the ordinal of its record.
type Keys interface {
	// Find sets rec to the record of a key.
	Find(key []byte, rec *mvcc.Record) (ordinal uint32, found bool, err error)
	// At sets rec to the record with an ordinal.
	At(ordinal uint32, rec *mvcc.Record) error
	// From calls fn with the keys from key on, in key order, while more is true.
	From(ctx context.Context, key []byte, fn func(rec *mvcc.Record, ordinal uint32) (more bool, err error)) error
	// Leased calls fn with the keys that have a lease.
	Leased(ctx context.Context, fn func(rec *mvcc.Record, ordinal uint32)) error
}

// Replay applies the entries of a log to a store, like a server (etcd server/etcdserver/apply and
// server/storage/mvcc). Memory grows with the keys that the entries change.
type Replay struct {
	Revision  int64
	Compacted int64 // the compact revision
	Members   int   // applied entries that change members
	// Edits are the new entries of other buckets, by bucket and key; nil for removed ones.
	Edits       map[string]map[string][]byte
	RecordsOnly bool // the changes of other buckets are not needed

	log     *wal.Log
	base    Keys                     // of the store before the first entry, nil for none
	keys    *btree.BTreeG[*keyState] // changed keys
	leases  map[int64]*leaseState
	alarms  alarms
	version string // of the cluster

	bytes, most int64 // of keys and values: those of all records so far, and the limit
	reads       int64 // bytes read so far for the conditions and ranges of requests, see read

	leased map[int64][]uint32 // ordinals of the keys of base with a lease, nil until needed

	entry wal.Entry                // the current one
	subs  int64                    // changes of the entry so far
	emit  func(*mvcc.Record) error // called with each record in revision order
}

// keyState is the latest state of a key. A deleted key has version 0.
type keyState struct {
	key                  string
	create, mod, version int64
	lease                int64
	value                valueAt
}

// valueAt is the place of a value: a record of the base, or a part of an entry's data.
type valueAt struct {
	based       bool
	ordinal     uint32
	at          wal.Position
	offset, len int
}

type leaseState struct {
	mvcc.Lease
	keys map[string]struct{} // attached by an entry of the log
}

const (
	alarmActivate   = 1
	alarmDeactivate = 2
)

// New returns a replay on a store, which calls emit with each record in revision order. The
// records have at most most bytes. Authentication is refused.
func New(log *wal.Log, store *Store, most int64, emit func(*mvcc.Record) error) (*Replay, error) {
	if store.Auth {
		return nil, fmt.Errorf("%w: authentication is enabled: users and roles decide about each request",
			ErrRefused)
	}
	r := &Replay{
		log: log, base: store.Keys, Revision: store.Revision, Compacted: store.Compacted, version: store.Version,
		leases: map[int64]*leaseState{}, alarms: alarms{}, most: most, emit: emit,
		Edits: map[string]map[string][]byte{},
		keys:  btree.NewG(32, func(a, b *keyState) bool { return a.key < b.key }),
	}
	for _, l := range store.Leases {
		r.leases[l.ID] = &leaseState{Lease: l}
	}
	for _, a := range store.Alarms {
		r.alarms.raise(a)
	}
	return r, nil
}

// Apply applies an entry.
func (r *Replay) Apply(ctx context.Context, e wal.Entry) error {
	r.entry, r.subs = e, 0
	if e.Conf {
		r.Members++
		return nil
	}
	kind, request, err := e.Request()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	err = r.request(ctx, kind, request)
	if r.subs > 0 {
		r.Revision++
	}
	if err == nil && r.Revision > mvcc.MaxRevision {
		err = fmt.Errorf("%w: no revision is left", errRequest)
	}
	if errors.Is(err, errRequest) || errors.Is(err, wal.ErrNotProtobuf) {
		err = fmt.Errorf("%w: entry %d: %w", wal.ErrUnusable, e.Index, err)
	}
	return err
}

// refuse is the error for an entry with an unknown effect.
func (r *Replay) refuse(why string) error {
	return fmt.Errorf("%w: entry %d: %s", ErrRefused, r.entry.Index, why)
}

func (r *Replay) request(ctx context.Context, kind wal.Kind, request wal.Message) error {
	if len(r.alarms[mvcc.AlarmCorrupt]) > 0 && kind != wal.Alarm && kind != wal.Other {
		return r.refuse("the alarm CORRUPT is raised")
	}
	switch kind {
	case wal.Put, wal.DeleteRange, wal.Txn:
		return r.write(ctx, kind, request)
	case wal.LeaseGrant, wal.LeaseRevoke, wal.LeaseCheckpoint:
		return r.lease(ctx, kind, request)
	case wal.AuthEnable:
		return r.refuse("it enables authentication: users and roles decide about each later request")
	case wal.Auth:
		if r.RecordsOnly {
			return nil
		}
		return r.refuse("it changes users or roles")
	case wal.MemberAttributes:
		r.Members++
		return nil
	}
	f, err := request.Fields()
	if err != nil {
		return err
	}
	switch kind {
	case wal.Compaction:
		if rev := f.Number(wal.CompactionRevision); rev > r.Compacted && rev <= r.Revision {
			r.Compacted = rev // a server on the file finishes the compaction
			r.Set(mvcc.MetaBucket, []byte(mvcc.ScheduledCompact),
				mvcc.AppendRevisionKey(nil, mvcc.Revision{Main: rev}, false))
		}
	case wal.Alarm:
		a := mvcc.Alarm{Member: uint64(f.Number(wal.AlarmMember)), Kind: uint64(f.Number(wal.AlarmKind))}
		el := a.Entry()
		switch action := f.Number(wal.AlarmAction); {
		case action == alarmActivate && a.Kind != 0:
			r.alarms.raise(a)
			r.Set("alarm", el.Key, el.Value)
		case action == alarmDeactivate:
			delete(r.alarms[a.Kind], a.Member)
			r.Set("alarm", el.Key, nil)
		}
	case wal.ClusterVersion:
		r.version = string(f.Bytes(wal.VersionText))
		r.Set("cluster", []byte("clusterVersion"), []byte(r.version))
	case wal.Downgrade:
		info, err := json.Marshal(mvcc.Downgrade{Target: string(f.Bytes(wal.DowngradeText)),
			Enabled: f.Number(wal.DowngradeEnabled) != 0})
		r.Set("cluster", []byte("downgrade"), info)
		return err
	}
	return nil
}

// alarms are the raised alarms, by kind and member.
type alarms map[uint64]map[uint64]bool

// raise raises an alarm.
func (all alarms) raise(a mvcc.Alarm) {
	if all[a.Kind] == nil {
		all[a.Kind] = map[uint64]bool{}
	}
	all[a.Kind][a.Member] = true
}

// lease applies a request about leases (etcd server/lease/lessor.go).
func (r *Replay) lease(ctx context.Context, kind wal.Kind, request wal.Message) error {
	if kind == wal.LeaseCheckpoint {
		return request.Each(wal.Checkpoints, func(m wal.Message) error {
			f, err := m.Fields()
			if l := r.leases[f.Number(wal.CheckpointID)]; l != nil && !mvcc.IsOlder(r.version, "3.6") {
				l.Remaining = f.Number(wal.CheckpointRemaining)
				r.setLease(f.Number(wal.CheckpointID))
			}
			return err
		})
	}
	f, err := request.Fields()
	if err != nil {
		return err
	}
	if kind == wal.LeaseRevoke {
		id := f.Number(wal.RevokeID)
		if r.leases[id] == nil {
			return nil
		}
		keys, err := r.leasedKeys(ctx, id)
		for _, key := range keys {
			if err == nil {
				err = r.delete(key)
			}
		}
		delete(r.leases, id)
		delete(r.leased, id) // the log knows all of these keys now
		r.setLease(id)
		return err
	}
	id, ttl := f.Number(wal.GrantID), f.Number(wal.GrantTTL)
	if id != 0 && ttl <= mvcc.MaxLeaseTTL && r.leases[id] == nil && len(r.alarms[mvcc.AlarmNoSpace]) == 0 {
		r.leases[id] = &leaseState{Lease: mvcc.Lease{ID: id, TTL: ttl}}
		r.setLease(id)
	}
	return nil
}

const (
	// maxReads limits the bytes read for conditions and ranges: a short transaction may compare the
	// values of all keys thousands of times.
	maxReads = 64 << 30
	// readOfKey and readOfEntry are the least bytes counted for a key, and for an entry of the log:
	// their time is that of about as many bytes.
	readOfKey, readOfEntry = 256, 16 << 10
)

// read counts bytes read for the current entry.
func (r *Replay) read(n int) error {
	if r.reads += int64(n); r.reads > maxReads {
		return r.refuse("the conditions and ranges of its requests read too many keys and values")
	}
	return nil
}

// Set changes an entry of a bucket other than "key"; nil removes it.
func (r *Replay) Set(bucket string, key, value []byte) {
	if r.Edits[bucket] == nil {
		r.Edits[bucket] = map[string][]byte{}
	}
	r.Edits[bucket][string(key)] = value
}

// setLease changes the entry of a lease.
func (r *Replay) setLease(id int64) {
	el := mvcc.Lease{ID: id}.Entry()
	if l := r.leases[id]; l != nil {
		el = l.Entry()
	} else {
		el.Value = nil
	}
	r.Set(mvcc.LeaseBucket, el.Key, el.Value)
}

// LeaseEntries returns the entries of all leases, sorted.
func (r *Replay) LeaseEntries() (all []bolt.Element) {
	for _, l := range r.leases {
		all = append(all, l.Entry())
	}
	slices.SortFunc(all, func(a, b bolt.Element) int { return bytes.Compare(a.Key, b.Key) })
	return all
}

// leasedKeys returns the keys of a lease, sorted.
func (r *Replay) leasedKeys(ctx context.Context, id int64) ([]string, error) {
	if r.leased == nil {
		r.leased = map[int64][]uint32{}
		if r.base != nil {
			err := r.base.Leased(ctx, func(rec *mvcc.Record, ordinal uint32) {
				r.leased[rec.Lease] = append(r.leased[rec.Lease], ordinal)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	keys := slices.Collect(maps.Keys(r.leases[id].keys))
	for _, ordinal := range r.leased[id] {
		var rec mvcc.Record
		if err := r.base.At(ordinal, &rec); err != nil {
			return nil, err
		}
		if !r.keys.Has(&keyState{key: string(rec.Key)}) { // else the log knows its lease
			keys = append(keys, string(rec.Key))
		}
	}
	slices.Sort(keys)
	return keys, nil
}
