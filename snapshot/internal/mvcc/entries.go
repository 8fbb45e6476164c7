package mvcc

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// varintField returns the last field of a message with the number want, or 0.
func varintField(msg []byte, want protowire.Number) (value uint64, err error) {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeField(msg)
		if n < 0 {
			return 0, fmt.Errorf("%w: malformed message", bolt.ErrDamaged)
		}
		if num == want && typ == protowire.VarintType {
			_, _, tag := protowire.ConsumeTag(msg)
			value, _ = protowire.ConsumeVarint(msg[tag:])
		}
		msg = msg[n:]
	}
	return value, nil
}

// ParseNumber decodes consistent_index or term of the meta bucket.
func ParseNumber(v []byte) (n uint64, known bool) {
	if len(v) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(v), true
}

// Lease is an entry of the lease bucket (etcd server/lease/leasepb/lease.proto).
type Lease struct {
	ID        int64
	TTL       int64 // seconds
	Remaining int64 // seconds at the last checkpoint; 0 for none, as in a grant
}

// MaxLeaseTTL is the maximum of a TTL in seconds (etcd server/lease/lessor.go, MaxLeaseTTL).
const MaxLeaseTTL = 9_000_000_000

// Field numbers of leasepb.Lease.
const (
	fieldLeaseID = iota + 1
	fieldLeaseTTL
	fieldLeaseRemaining
)

// ParseLease decodes the value of an entry; a server ignores its key.
func ParseLease(v []byte) (l Lease, err error) {
	for num, to := range map[protowire.Number]*int64{
		fieldLeaseID: &l.ID, fieldLeaseTTL: &l.TTL, fieldLeaseRemaining: &l.Remaining,
	} {
		n, err := varintField(v, num)
		if err != nil {
			return Lease{}, err
		}
		*to = int64(n)
	}
	return l, nil
}

// Entry returns the entry of the lease.
func (l Lease) Entry() bolt.Element {
	v := AppendInt(AppendInt(nil, fieldLeaseID, l.ID), fieldLeaseTTL, l.TTL)
	return bolt.Element{Key: binary.BigEndian.AppendUint64(nil, uint64(l.ID)),
		Value: AppendInt(v, fieldLeaseRemaining, l.Remaining)}
}

// The alarms known to etcd (etcd api/etcdserverpb/rpc.proto, AlarmType).
const (
	AlarmNoSpace = 1
	AlarmCorrupt = 2
)

// AlarmName returns etcd's name of an alarm, or "".
func AlarmName(kind uint64) string {
	return map[uint64]string{AlarmNoSpace: "NOSPACE", AlarmCorrupt: "CORRUPT"}[kind]
}

// Field numbers of etcdserverpb.AlarmMember.
const (
	fieldAlarmMember = 1
	fieldAlarm       = 2
)

// Alarm is an entry of the alarm bucket: its key has all of it.
type Alarm struct{ Member, Kind uint64 }

// ParseAlarm decodes the key of an entry.
func ParseAlarm(k []byte) (a Alarm, err error) {
	if a.Member, err = varintField(k, fieldAlarmMember); err == nil {
		a.Kind, err = varintField(k, fieldAlarm)
	}
	return a, err
}

// Entry returns the entry of the alarm.
func (a Alarm) Entry() bolt.Element {
	k := AppendInt(nil, fieldAlarmMember, int64(a.Member))
	return bolt.Element{Key: AppendInt(k, fieldAlarm, int64(a.Kind)), Value: []byte{}}
}

// Member is the value of an entry of the members bucket.
type Member struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner"`
}

// MaxMemberSize is the maximum size of a member in bytes of JSON, for a hostile file: a member has
// a few URLs.
const MaxMemberSize = 16 << 10

// ParseMember decodes a value; false if it is not readable.
func ParseMember(v []byte) (m Member, readable bool) {
	if len(v) > MaxMemberSize || json.Unmarshal(v, &m) != nil {
		return Member{}, false
	}
	return m, true
}

// Downgrade is a downgrade of the cluster (etcd server/etcdserver/version/downgrade.go).
type Downgrade struct {
	Target  string `json:"target-version"`
	Enabled bool   `json:"enabled"`
}

// IsOlder reports whether release a is older than b: it compares major and minor numbers, like
// etcd.
func IsOlder(a, b string) bool {
	numbers := func(s string) (n [2]int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(s, "v"), "%d.%d", &n[0], &n[1]) // 0 for no number
		return n
	}
	x, y := numbers(a), numbers(b)
	return slices.Compare(x[:], y[:]) < 0
}
