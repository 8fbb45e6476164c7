package mvcc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Errors of entries.
var (
	// ErrOdd marks an entry that etcd never writes, but a restore and a server accept.
	ErrOdd = errors.New("odd, but etcd accepts it")
	// ErrNewer marks a version with which no known server starts.
	ErrNewer = errors.New("of that release")
)

const (
	LeaseBucket = "lease"
	MetaBucket  = "meta"

	// Revision keys in the meta bucket.
	FinishedCompact  = "finishedCompactRev"
	ScheduledCompact = "scheduledCompactRev"
)

// Buckets returns the buckets of a server (etcd server/storage/schema/bucket.go), in order.
func Buckets() []string {
	return []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", LeaseBucket, "members",
		"members_removed", MetaBucket}
}

// CheckEntry checks an entry of a bucket other than "key" that a server of etcd 3.4 to 3.7, or
// "etcdutl snapshot restore", decodes at the start (etcd server/storage/schema). The error names
// bucket and key. The error wraps ErrOdd if both accept the entry, and bolt.ErrDamaged if one
// panics or exits.
func CheckEntry(bucket string, k, v []byte) (err error) {
	switch bucket {
	case MetaBucket:
		err = checkMeta(k, v)
	case LeaseBucket:
		err = checkLease(k, v)
	case "alarm":
		err = checkAlarm(k)
	case "auth":
		switch name := string(k); {
		case name == "authRevision" && len(v) < 8:
			err = fmt.Errorf("%d bytes are no revision", len(v))
		case name == "authEnabled" && !bytes.Equal(v, []byte{0}) && !bytes.Equal(v, []byte{1}):
			err = fmt.Errorf("%w: a server takes it for disabled", ErrOdd)
		}
	case "authUsers":
		err = checkNamed(userMessage(), k, v)
	case "authRoles":
		err = checkNamed(roleMessage(), k, v)
	case "members", "members_removed": // a restore removes all members by their ids
		_, readable := ParseMember(v)
		_, idErr := strconv.ParseUint(string(k[:min(len(k), 64)]), 16, 64) // as in client/pkg/types/id.go
		switch {
		case idErr != nil:
			err = errors.New("it is not a member's id in hexadecimal")
		case bucket == "members" && !readable:
			err = fmt.Errorf("%w: it is not JSON of a member", ErrOdd)
		}
	case "cluster":
		err = checkCluster(k, v)
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrOdd) {
		err = fmt.Errorf("%w: %w", bolt.ErrDamaged, err)
	}
	return fmt.Errorf("bucket %q: %s: %w", bucket, entryName(k), err)
}

// checkMeta checks an entry of the meta bucket. A restore replaces consistent_index and term, and a
// server ignores an unreadable confState or storageVersion.
func checkMeta(k, v []byte) error {
	switch string(k) {
	case FinishedCompact, ScheduledCompact:
		if _, _, err := ParseRevisionKey(v); err != nil {
			return errors.New("it is not a revision")
		}
	case "consistent_index", "term":
		if n, _ := ParseNumber(v); n == 0 {
			return fmt.Errorf("%w: it is not a number above 0", ErrOdd)
		}
	case "confState":
		var state struct {
			Voters []uint64 `json:"voters"`
		}
		if json.Unmarshal(v, &state) != nil {
			return fmt.Errorf("%w: it is not JSON of a raft ConfState", ErrOdd)
		}
	case "storageVersion":
		got, err := parseVersion(v)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrOdd, err)
		case got.before(5):
			return fmt.Errorf("no etcd %s stores one, and none migrates from it", Clip(v))
		}
		return known(got)
	}
	return nil
}

func checkLease(k, v []byte) error {
	if err := leaseMessage().check(v); err != nil {
		return err
	}
	l, _ := ParseLease(v) // a message, as was checked
	switch {
	case l.ID <= 0 || !bytes.Equal(k, l.Entry().Key):
		return fmt.Errorf("%w: it is the lease %d", ErrOdd, l.ID)
	case l.TTL <= 0 || l.TTL > MaxLeaseTTL:
		return fmt.Errorf("%w: its time to live is %d seconds", ErrOdd, l.TTL)
	}
	return nil
}

// checkAlarm checks the key of an alarm. A restore keeps an alarm of any member.
func checkAlarm(k []byte) error {
	if err := alarmMessage().check(k); err != nil {
		return err
	}
	a, _ := ParseAlarm(k)
	if name := AlarmName(a.Kind); name != "" {
		return fmt.Errorf("%w: the alarm %s is raised, and a server refuses every write until it is disarmed",
			ErrOdd, name)
	}
	return nil
}

// checkNamed checks a user or role.
func checkNamed(m message, k, v []byte) error {
	if err := m.check(v); err != nil {
		return err
	}
	m[1] = wireField{typ: protowire.BytesType, text: true} // the name, now as text
	if !utf8.Valid(k) || m.check(v) != nil {
		return fmt.Errorf("%w: its name is not UTF-8, and no server can list it", ErrOdd)
	}
	return nil
}

func checkCluster(k, v []byte) error {
	switch string(k) {
	case "clusterVersion":
		got, err := parseVersion(v)
		if err != nil {
			return err
		}
		return known(got)
	case "downgrade":
		var info Downgrade
		if err := json.Unmarshal(v, &info); err != nil {
			return errors.New("it is not JSON of a downgrade")
		}
		if _, err := parseVersion([]byte(info.Target)); info.Enabled && err != nil {
			return fmt.Errorf("the downgrade's target: %w", err)
		}
	}
	return nil
}

// version is a version of etcd without its patch level and pre-release.
type version struct{ major, minor int64 }

// versionSyntax is the syntax of etcd's own parser, github.com/coreos/go-semver.
var versionSyntax = pattern.New(`^(\d+)\.(\d+)\.(\d+)(-` + identifiers + `)?(\+` + identifiers + `)?$`)

const identifiers = `([0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?`

func parseVersion(b []byte) (version, error) {
	parts := versionSyntax().FindSubmatch(b)
	if parts == nil {
		return version{}, fmt.Errorf("%q is no version", Clip(b))
	}
	var numbers [3]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(string(parts[i+1]), 10, 64); err != nil {
			return version{}, fmt.Errorf("%q is no version", Clip(b))
		}
	}
	return version{numbers[0], numbers[1]}, nil
}

// before reports whether v is before release 3.minor.
func (v version) before(minor int64) bool { return v.major < 3 || v.major == 3 && v.minor < minor }

// known returns ErrOdd for a release later than the releases known to this package.
func known(v version) error {
	if !v.before(8) {
		return fmt.Errorf("%w %w: etcd 3.7 and older do not start on it", ErrOdd, ErrNewer)
	}
	return nil
}

// message holds the fields of a protobuf message. A field of another wire type is an error: etcd
// 3.7 skips such a field, etcd 3.4 to 3.6 crash.
type message map[protowire.Number]wireField

type wireField struct {
	typ    protowire.Type
	text   bool    // UTF-8, required by etcd 3.7
	fields message // fields of a nested message
}

// The messages decoded by a server at the start; a test compares them with etcd's own definitions.
func leaseMessage() message { return message{1: varint(), 2: varint(), 3: varint()} } // leasepb.Lease
func alarmMessage() message { return message{1: varint(), 2: varint()} }              // etcdserverpb.AlarmMember

func userMessage() message { // authpb.User
	options := message{1: varint()}
	return message{1: raw(), 2: raw(), 3: {typ: protowire.BytesType, text: true}, 4: within(options)}
}

func roleMessage() message { // authpb.Role
	return message{1: raw(), 2: within(message{1: varint(), 2: raw(), 3: raw()})}
}

func varint() wireField          { return wireField{typ: protowire.VarintType} }
func raw() wireField             { return wireField{typ: protowire.BytesType} }
func within(m message) wireField { return wireField{typ: protowire.BytesType, fields: m} }

// check returns an error if msg is not a message of this kind. Unknown fields are skipped, as in
// protobuf.
func (m message) check(msg []byte) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 || num > protowire.MaxValidNumber {
			return errors.New("it is not a protobuf message")
		}
		msg = msg[n:]
		field, known := m[num]
		if known && field.typ != typ {
			return fmt.Errorf("field %d has wire type %d, want %d", num, typ, field.typ)
		}
		if n = protowire.ConsumeFieldValue(num, typ, msg); n < 0 {
			return fmt.Errorf("field %d is malformed", num)
		}
		if known && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(msg)
			if field.text && !utf8.Valid(value) {
				return fmt.Errorf("field %d is not UTF-8", num)
			}
			if field.fields != nil {
				if err := field.fields.check(value); err != nil {
					return fmt.Errorf("field %d: %w", num, err)
				}
			}
		}
		msg = msg[n:]
	}
	return nil
}

// entryName returns a bucket key for an error text: quoted if printable, else in hexadecimal.
func entryName(k []byte) string {
	if utf8.Valid(k) && !bytes.ContainsFunc(k, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return fmt.Sprintf("key %q", Clip(k))
	}
	return fmt.Sprintf("key %x", Clip(k))
}
