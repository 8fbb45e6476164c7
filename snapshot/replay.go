package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/btree"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// errNotReplayed is returned for an entry of the log with an effect that depends on more than the
// log and the database.
var errNotReplayed = finding.WithLasting(fmt.Errorf("the log cannot be replayed"),
	"start etcd on a copy of the data directory, and save a snapshot of it; or give the file member/snap/db, which "+
		"is the database without the latest writes")

// errRequest is returned for a request that no server accepts.
var errRequest = errors.New("not a request of etcd")

// replay applies the entries of a log to a store, like a server (etcd server/etcdserver/apply and
// server/storage/mvcc). Memory grows with the keys that the entries change.
type replay struct {
	log  *wal.Log
	base *Snapshot // the store before the first entry, nil for an empty one
	x    *index    // of base

	revision  int64
	compacted int64                     // the compact revision
	keys      *btree.BTreeG[*replayKey] // changed keys
	leases    map[int64]*replayLease
	alarms    map[int64]map[uint64]bool // by kind and member
	version   string                    // of the cluster
	members   int                       // applied entries that change members

	recordsOnly bool // the changes of other buckets are not needed

	bytes, most int64 // of keys and values: those of all records so far, and the limit
	reads       int64 // bytes read so far for the conditions and ranges of requests, see read

	edits map[string]map[string][]byte // by bucket and key: new entries of other buckets, nil for removed ones

	leased map[int64][]uint32 // ordinals of the keys of base with a lease, nil until needed
	sorted *Sorted            // keys of base, nil until needed

	entry wal.Entry           // the current one
	subs  int64               // changes of the entry so far
	emit  func(*Record) error // called with each record in revision order
}

// replayKey is the latest state of a key. A deleted key has version 0.
type replayKey struct {
	key                  string
	create, mod, version int64
	lease                int64
	value                replayValue
}

// replayValue is the place of a value: a record of the base, or a part of an entry's data.
type replayValue struct {
	based       bool
	ordinal     uint32
	at          wal.Position
	offset, len int
}

type replayLease struct {
	mvcc.Lease
	keys map[string]struct{} // attached by an entry of the log
}

const (
	alarmActivate   = 1
	alarmDeactivate = 2
)

// newReplay returns a replay on base, which may be nil.
func newReplay(ctx context.Context, log *wal.Log, base *Snapshot, emit func(*Record) error) (r *replay, err error) {
	r = &replay{
		log: log, base: base, revision: 1, leases: map[int64]*replayLease{}, emit: emit,
		alarms: map[int64]map[uint64]bool{}, edits: map[string]map[string][]byte{}, most: DefaultMaxExpand,
		keys: btree.NewG(32, func(a, b *replayKey) bool { return a.key < b.key }),
	}
	if base == nil {
		return r, nil
	}
	if r.x, err = base.index(ctx); err != nil {
		return nil, err
	}
	r.revision, r.compacted = r.x.revision(), r.x.compacted()
	err = base.entries(ctx, mvcc.LeaseBucket, func(_, v []byte) error {
		l, err := mvcc.ParseLease(v)
		r.leases[l.ID] = &replayLease{Lease: l}
		return err
	})
	if err != nil {
		return nil, err
	}
	st, err := base.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if st.AuthEnabled {
		return nil, fmt.Errorf("%w: authentication is enabled: users and roles decide about each request",
			errNotReplayed)
	}
	r.version = st.ClusterVersion
	return r, base.entries(ctx, "alarm", func(k, _ []byte) error {
		member, kind, err := mvcc.ParseAlarm(k)
		r.raise(member, int64(kind))
		return err
	})
}

// apply applies an entry.
func (r *replay) apply(ctx context.Context, e wal.Entry) error {
	r.entry, r.subs = e, 0
	if e.Conf {
		r.members++
		return nil
	}
	kind, request, err := e.Request()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotReplayed, err)
	}
	err = r.request(ctx, kind, request)
	if r.subs > 0 {
		r.revision++
	}
	if err == nil && r.revision > mvcc.MaxRevision {
		err = fmt.Errorf("%w: no revision is left", errRequest)
	}
	if errors.Is(err, errRequest) || errors.Is(err, wal.ErrNotProtobuf) {
		err = fmt.Errorf("%w: entry %d: %w", ErrLog, e.Index, err)
	}
	return err
}

// refuse is the error for an entry with an unknown effect.
func (r *replay) refuse(why string) error {
	return fmt.Errorf("%w: entry %d: %s", errNotReplayed, r.entry.Index, why)
}

func (r *replay) request(ctx context.Context, kind wal.Kind, request wal.Message) error {
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
		if r.recordsOnly {
			return nil
		}
		return r.refuse("it changes users or roles")
	case wal.MemberAttributes:
		r.members++
		return nil
	}
	f, err := request.Fields()
	if err != nil {
		return err
	}
	switch kind {
	case wal.Compaction:
		if rev := f.Number(wal.CompactionRevision); rev > r.compacted && rev <= r.revision {
			r.compacted = rev // a server on the file finishes the compaction
			r.set(mvcc.MetaBucket, []byte(mvcc.ScheduledCompact),
				mvcc.AppendRevisionKey(nil, Revision{Main: rev}, false))
		}
	case wal.Alarm:
		member, alarm := f.Number(wal.AlarmMember), f.Number(wal.AlarmKind)
		key := mvcc.AlarmKey(member, alarm)
		switch action := f.Number(wal.AlarmAction); {
		case action == alarmActivate && alarm != 0:
			r.raise(uint64(member), alarm)
			r.set("alarm", key, []byte{})
		case action == alarmDeactivate:
			delete(r.alarms[alarm], uint64(member))
			r.set("alarm", key, nil)
		}
	case wal.ClusterVersion:
		r.version = string(f.Bytes(wal.VersionText))
		r.set("cluster", []byte("clusterVersion"), []byte(r.version))
	case wal.Downgrade:
		info, err := json.Marshal(mvcc.Downgrade{Target: string(f.Bytes(wal.DowngradeText)),
			Enabled: f.Number(wal.DowngradeEnabled) != 0})
		r.set("cluster", []byte("downgrade"), info)
		return err
	}
	return nil
}

// raise raises an alarm of a member.
func (r *replay) raise(member uint64, kind int64) {
	if r.alarms[kind] == nil {
		r.alarms[kind] = map[uint64]bool{}
	}
	r.alarms[kind][member] = true
}

// lease applies a request about leases (etcd server/lease/lessor.go).
func (r *replay) lease(ctx context.Context, kind wal.Kind, request wal.Message) error {
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
		r.leases[id] = &replayLease{Lease: mvcc.Lease{ID: id, TTL: ttl}}
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
func (r *replay) read(n int) error {
	if r.reads += int64(n); r.reads > maxReads {
		return r.refuse("the conditions and ranges of its requests read too many keys and values")
	}
	return nil
}

// set changes an entry of a bucket other than "key"; nil removes it.
func (r *replay) set(bucket string, key, value []byte) {
	if r.edits[bucket] == nil {
		r.edits[bucket] = map[string][]byte{}
	}
	r.edits[bucket][string(key)] = value
}

// setLease changes the entry of a lease.
func (r *replay) setLease(id int64) {
	el := mvcc.Lease{ID: id}.Entry()
	if l := r.leases[id]; l != nil {
		el = l.Entry()
	} else {
		el.Value = nil
	}
	r.set(mvcc.LeaseBucket, el.Key, el.Value)
}

// leasedKeys returns the keys of a lease, sorted.
func (r *replay) leasedKeys(ctx context.Context, id int64) ([]string, error) {
	if r.leased == nil {
		r.leased = map[int64][]uint32{}
		if r.base != nil {
			err := r.x.scan(ctx, r.x.live.has, func(rec Scanned) error {
				if rec.Lease != 0 {
					r.leased[rec.Lease] = append(r.leased[rec.Lease], rec.ordinal)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	keys := slices.Collect(maps.Keys(r.leases[id].keys))
	for _, ordinal := range r.leased[id] {
		var rec Record
		if err := r.x.read(func() error { return r.x.at(ordinal, &rec) }); err != nil {
			return nil, err
		}
		if !r.keys.Has(&replayKey{key: string(rec.Key)}) { // else the log knows its lease
			keys = append(keys, string(rec.Key))
		}
	}
	slices.Sort(keys)
	return keys, nil
}
