package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scanned is a record, and whether it is the live value of its key.
type Scanned struct {
	*Record
	Live   bool
	Stored int // bytes of the entry in the key bucket: revision key and KeyValue
}

// Scan yields what Records yields, and says of each whether it is the latest of its key and no deletion. Errors and validity
// are those of Live.
func (s *Snapshot) Scan(ctx context.Context) iter.Seq2[Scanned, error] {
	return func(yield func(Scanned, error) bool) {
		x, err := s.index(ctx)
		if err != nil {
			yield(Scanned{}, err)
			return
		}
		s.scan(ctx, x, func(uint32) bool { return true }, func(ordinal uint32, r *Record, err error) bool {
			if err != nil {
				return yield(Scanned{}, err)
			}
			return yield(Scanned{Record: r, Live: x.isLive(ordinal), Stored: r.size()}, nil)
		})
	}
}

// size is the bytes of the record's revision key and KeyValue as etcd writes them.
func (r *Record) size() int {
	n := revisionKeySize
	if r.Tombstone {
		n++
	}
	for _, b := range [][]byte{r.Key, r.Value} {
		if len(b) > 0 {
			n += protowire.SizeTag(fieldKey) + protowire.SizeBytes(len(b))
		}
	}
	for _, v := range []int64{r.CreateRevision, r.ModRevision, r.Version, r.Lease} {
		if v != 0 {
			n += protowire.SizeTag(fieldKey) + protowire.SizeVarint(uint64(v))
		}
	}
	return n
}

// Space is how the pages of the file are used. A page is free where nothing points to it: it may hold old values until the
// database is defragmented.
type Space struct {
	PageSize  int    // bytes
	Pages     uint64 // of the image
	FreePages uint64
}

// Space returns how the pages are used; Open has found that out.
func (s *Snapshot) Space() Space {
	return Space{PageSize: s.meta.pageSize, Pages: s.meta.highWater, FreePages: s.meta.highWater - 2 - s.reachable}
}

// Leases returns the time to live of each lease, in seconds, by its id. After a restore each begins anew.
func (s *Snapshot) Leases(ctx context.Context) (map[int64]int64, error) {
	leases := map[int64]int64{}
	check := entryChecks()[leaseBucket]
	err := s.guardedEntries(ctx, leaseBucket, func(k, v []byte) error {
		if err := check.of(leaseBucket, k, v); err != nil && !errors.Is(err, errOdd) {
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

// Alarm is a kind of alarm that a member has raised, as etcd names it.
type Alarm string

// The alarms that etcd knows (etcd api/etcdserverpb/rpc.proto, AlarmType).
const (
	AlarmNoSpace Alarm = "NOSPACE"
	AlarmCorrupt Alarm = "CORRUPT"
)

// Alarms returns the alarms that the file holds, one an entry. A restore keeps them.
func (s *Snapshot) Alarms(ctx context.Context) ([]Raised, error) {
	var st Status
	err := s.guardedEntries(ctx, "alarm", st.addAlarm)
	return st.Alarms, err
}

// alarmOf is the name of AlarmType n; the number itself where there is none.
func alarmOf(n uint64) Alarm {
	switch n {
	case 1:
		return AlarmNoSpace
	case 2:
		return AlarmCorrupt
	}
	return Alarm(fmt.Sprint(n))
}

func (s *Snapshot) guardedEntries(ctx context.Context, bucket string, fn func(k, v []byte) error) error {
	return s.wrap(s.guard(func() error { return s.entries(ctx, bucket, fn) }))
}

// varintField is the last field of that number in a message, 0 where there is none.
func varintField(msg []byte, want protowire.Number) (value uint64, err error) {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return 0, fmt.Errorf("%w: malformed message", ErrDamaged)
		}
		msg = msg[n:]
		if num == want && typ == protowire.VarintType {
			value, n = protowire.ConsumeVarint(msg)
		} else {
			n = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if n < 0 {
			return 0, fmt.Errorf("%w: malformed message", ErrDamaged)
		}
		msg = msg[n:]
	}
	return value, nil
}
