package wal

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kind is the kind of a request.
type Kind int

// The kinds of requests. Other requests change nothing in a database except, perhaps, its members.
const (
	Other Kind = iota
	Put
	DeleteRange
	Txn
	Range
	Compaction
	LeaseGrant
	LeaseRevoke
	LeaseCheckpoint
	Alarm
	ClusterVersion
	Downgrade
	MemberAttributes
	Auth       // a change of users or roles
	AuthEnable // the beginning of checks by users and roles
)

// Message is a request of an entry, or a part of one: an encoded protobuf message.
type Message []byte

// Request returns the request of the entry (etcd api/etcdserverpb/raft_internal.proto). An entry
// without data, or of the API before etcd 3, is of kind Other.
func (e *Entry) Request() (kind Kind, request Message, err error) {
	if e.Conf || len(e.Data) == 0 {
		return Other, nil, nil
	}
	found := 0
	err = eachField(e.Data, func(num protowire.Number, _ uint64, b []byte) error {
		is := kindOf(num)
		if is == none {
			return nil
		}
		kind, request, found = is, b, found+1
		return nil
	})
	switch {
	case err != nil:
	case found == 0 && !e.isOld():
		err = errors.New("a request unknown to etcd 3.7")
	case found > 1:
		err = fmt.Errorf("%d requests in one entry", found)
	}
	if err != nil {
		return Other, nil, fmt.Errorf("entry %d: %w", e.Index, err)
	}
	return kind, request, nil
}

// none is the kind of a field without a request.
const none Kind = -1

// kindOf returns the kind of request in a field of an InternalRaftRequest.
func kindOf(num protowire.Number) Kind {
	switch num {
	case 3:
		return Range
	case 4:
		return Put
	case 5:
		return DeleteRange
	case 6:
		return Txn
	case 7:
		return Compaction
	case 8:
		return LeaseGrant
	case 9:
		return LeaseRevoke
	case 10:
		return Alarm
	case 11:
		return LeaseCheckpoint
	case 1000:
		return AuthEnable
	case 1011, 1012:
		return Auth
	case 1300:
		return ClusterVersion
	case 1301:
		return MemberAttributes
	case 1302:
		return Downgrade
	case 1013, 1102, 1106, 1107, 1202, 9900: // questions about users and roles, and a test
		return Other
	}
	if num >= 1100 && num < 1300 {
		return Auth
	}
	return none
}

// isOld reports whether the entry is a request of the API before etcd 3, which etcd 3.5 still wrote
// for the attributes of members and the version of the cluster: an etcdserverpb.Request, with a
// method in field 2 and a path in field 3, or an InternalRaftRequest with one in field 2.
func (e *Entry) isOld() bool {
	old := false
	_ = eachField(e.Data, func(num protowire.Number, _ uint64, b []byte) error {
		old = old || num == 2 && b != nil
		return nil
	})
	return old
}

// Fields are the fields 1 to 15 of a message. Of a repeated field the last one counts.
type Fields struct {
	number [16]uint64
	bytes  [16][]byte
}

// Fields decodes a message.
func (m Message) Fields() (f Fields, err error) {
	err = eachField(m, func(num protowire.Number, n uint64, b []byte) error {
		if num < protowire.Number(len(f.number)) {
			f.number[num], f.bytes[num] = n, b
		}
		return nil
	})
	return f, err
}

// Number returns a field as a number, 0 for none.
func (f *Fields) Number(num int) int64 { return int64(f.number[num]) }

// Bytes returns a field as bytes, nil for none.
func (f *Fields) Bytes(num int) []byte { return f.bytes[num] }

// Fields of messages (etcd api/etcdserverpb/rpc.proto).
const (
	PutKey, PutValue, PutLease, PutIgnoreValue, PutIgnoreLease = 1, 2, 3, 5, 6

	DeleteKey, DeleteEnd = 1, 2

	RangeRevision = 4

	TxnCompare, TxnSuccess, TxnFailure = 1, 2, 3

	CompactionRevision = 1

	GrantTTL, GrantID = 1, 2

	RevokeID = 1

	Checkpoints, CheckpointID, CheckpointRemaining = 1, 1, 2

	AlarmAction, AlarmMember, AlarmKind = 1, 2, 3

	VersionText = 1 // membershippb.ClusterVersionSetRequest

	DowngradeEnabled, DowngradeText = 1, 2 // membershippb.DowngradeInfoSetRequest
)

// Each calls fn with each message in a repeated field.
func (m Message) Each(field int, fn func(Message) error) error {
	return eachField(m, func(num protowire.Number, _ uint64, b []byte) error {
		if num != protowire.Number(field) || b == nil {
			return nil
		}
		return fn(b)
	})
}

// Operation returns the request of an operation in a transaction (RequestOp).
func (m Message) Operation() (kind Kind, request Message, err error) {
	kinds := [...]Kind{1: Range, 2: Put, 3: DeleteRange, 4: Txn}
	err = eachField(m, func(num protowire.Number, _ uint64, b []byte) error {
		if num < protowire.Number(len(kinds)) && b != nil {
			kind, request = kinds[num], b
		}
		return nil
	})
	return kind, request, err
}

// Compare is a condition of a transaction.
type Compare struct {
	Result, Target int64 // see the constants
	Key, End       []byte
	Number         int64  // of the target, unless it is the value
	Value          []byte // of the target CompareValue
}

// What a Compare compares, and how.
const (
	CompareVersion = iota
	CompareCreate
	CompareMod
	CompareValue
	CompareLease

	Equal    = 0
	Greater  = 1
	Less     = 2
	NotEqual = 3
)

// Compare decodes a condition. A target of another kind than the union holds is compared with zero,
// as in etcd.
func (m Message) Compare() (c Compare, err error) {
	union, value := protowire.Number(0), uint64(0)
	err = eachField(m, func(num protowire.Number, n uint64, b []byte) error {
		switch num {
		case 1:
			c.Result = int64(n)
		case 2:
			c.Target = int64(n)
		case 3:
			c.Key = b
		case 4, 5, 6, 8:
			union, value, c.Value = num, n, nil
		case 7:
			union, value, c.Value = num, 0, b
		case 64:
			c.End = b
		}
		return nil
	})
	fields := [...]protowire.Number{CompareVersion: 4, CompareCreate: 5, CompareMod: 6, CompareLease: 8}
	if c.Target >= 0 && c.Target < int64(len(fields)) && union == fields[c.Target] {
		c.Number = int64(value)
	}
	if c.Target != CompareValue {
		c.Value = nil
	}
	return c, err
}

// Keys calls fn with each key that the entry may write.
func (e *Entry) Keys(fn func(key []byte)) error {
	kind, request, err := e.Request()
	if err != nil {
		return err
	}
	return request.keys(kind, fn, 0)
}

// maxDepth limits the depth of transactions within transactions.
const maxDepth = 32

func (m Message) keys(kind Kind, fn func(key []byte), depth int) error {
	switch kind {
	case Put, DeleteRange: // both have the key in field 1
		f, err := m.Fields()
		fn(f.Bytes(PutKey))
		return err
	case Txn:
		if depth > maxDepth {
			return fmt.Errorf("transactions nested deeper than %d", maxDepth)
		}
		for _, branch := range []int{TxnSuccess, TxnFailure} {
			err := m.Each(branch, func(op Message) error {
				kind, request, err := op.Operation()
				if err != nil {
					return err
				}
				return request.keys(kind, fn, depth+1)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
