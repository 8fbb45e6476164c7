package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
)

// Status is what a file says about itself and what reading it found.
type Status struct {
	Path      string   `json:"path"`
	Bytes     int64    `json:"bytes"`     // of the file as it was given
	Raw       bool     `json:"raw"`       // a member/snap/db, not an etcdctl snapshot
	PageSize  int      `json:"pageSize"`  // bytes
	Pages     uint64   `json:"pages"`     // of the image
	FreePages uint64   `json:"freePages"` // pages that nothing points to; they may hold old values
	SHA256    string   `json:"sha256"`    // of the whole file, as sha256sum prints it; empty when skipped
	Digest    string   `json:"digest"`    // "ok", "none" (raw) or "skipped"
	Hash      string   `json:"hash"`      // as "etcdutl snapshot status" prints it: eight hex digits
	Warnings  []string `json:"warnings,omitempty"`

	Compression   string `json:"compression,omitempty"`   // "gzip", "zstd" or "zip", where the file given is compressed
	ExpandedBytes int64  `json:"expandedBytes,omitempty"` // what that expands to

	Revision         int64 `json:"revision"`         // current revision, as a server would start with
	LastRecord       int64 `json:"lastRecord"`       // what "etcdutl snapshot status" prints as the revision, which may be less
	CompactRevision  int64 `json:"compactRevision"`  // finished, 0 for none
	ScheduledCompact int64 `json:"scheduledCompact"` // scheduled, 0 for none; higher than CompactRevision when one was interrupted
	Records          int   `json:"records"`          // in the key bucket, tombstones included
	Tombstones       int   `json:"tombstones"`
	EmptyRecords     int   `json:"emptyRecords"` // left by --bump-revision
	Keys             int   `json:"keys"`         // live

	StorageVersion  string   `json:"storageVersion,omitempty"` // etcd 3.6 and later
	ClusterVersion  string   `json:"clusterVersion,omitempty"`
	EtcdVersion     string   `json:"etcdVersion"` // what the file tells: "3.7", "3.5", "3.4 or older"
	ConsistentIndex uint64   `json:"consistentIndex"`
	Term            uint64   `json:"term"`
	Leases          int      `json:"leases"`
	LeasedKeys      int      `json:"leasedKeys"` // live keys that hold a lease; after a restore each lease begins anew
	Alarms          []Raised `json:"alarms"`     // a restore keeps them
	AuthEnabled     bool     `json:"authEnabled"`
	AuthUsers       int      `json:"authUsers"`
	AuthRoles       int      `json:"authRoles"`
	Members         []Member `json:"members,omitempty"`
}

// Raised is an alarm of a member. While the file's cluster has one of kind NOSPACE it takes no writes.
type Raised struct {
	Kind   Alarm  `json:"kind"`
	Member string `json:"member"` // id, lower-case hex
}

// maxAlarms bounds what a hostile file has read into memory; there are two kinds a member.
const maxAlarms = 2 * maxMembers

// addAlarm reads an entry of the alarm bucket, whose key is all there is (etcdserverpb.AlarmMember).
func (st *Status) addAlarm(k, v []byte) error {
	const memberID, kind = 1, 2
	if len(st.Alarms) == maxAlarms {
		return fmt.Errorf("%w: bucket \"alarm\": more than %d alarms", ErrDamaged, maxAlarms)
	}
	if err := entryChecks()["alarm"].of("alarm", k, v); err != nil {
		return err
	}
	id, err := varintField(k, memberID)
	if err != nil {
		return err
	}
	n, err := varintField(k, kind)
	st.Alarms = append(st.Alarms, Raised{alarmOf(n), strconv.FormatUint(id, 16)})
	return err
}

// Status reads everything but the values and waits for the digest. An error of the digest is returned beside a Status that
// is otherwise whole.
func (s *Snapshot) Status(ctx context.Context) (Status, error) {
	x, err := s.index(ctx)
	if err != nil {
		return Status{}, err
	}
	st := Status{
		Path: s.path, Bytes: s.Size(), Raw: s.raw, PageSize: s.meta.pageSize, Pages: s.meta.highWater,
		FreePages: s.meta.highWater - 2 - s.reachable, Warnings: s.warnings,
		Revision: x.revision(), LastRecord: x.last.Main, CompactRevision: x.finished, ScheduledCompact: x.scheduled,
		Records: x.records, Tombstones: x.tombstones, EmptyRecords: x.empty, Keys: x.alive,
		LeasedKeys: x.leased, Alarms: []Raised{},
	}
	if err := s.FreeList(); err != nil {
		st.Warnings = append(slices.Clone(st.Warnings), err.Error())
	}
	if s.compression != "" {
		st.Compression, st.ExpandedBytes = s.compression, int64(len(s.data))
	}
	err = s.guard(func() error {
		if err := s.readBuckets(ctx, &st); err != nil {
			return err
		}
		sum, err := s.contentHash(ctx)
		st.Hash = fmt.Sprintf("%08x", sum)
		return err
	})
	if err != nil {
		return Status{}, s.wrap(err)
	}
	return st, s.addDigest(ctx, &st)
}

func (s *Snapshot) addDigest(ctx context.Context, st *Status) error {
	d, err := s.Digest(ctx)
	if d != (Digest{}) {
		st.SHA256 = fmt.Sprintf("%x", d.File)
	}
	switch {
	case err != nil:
		st.Digest = "wrong"
	case d == Digest{}:
		st.Digest = "skipped"
	case d.Present:
		st.Digest = "ok"
	default:
		st.Digest = "none"
	}
	return err
}

// Revision is the current revision of the store: what a server started on the file would answer.
func (s *Snapshot) Revision(ctx context.Context) (int64, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	return x.revision(), nil
}

// Keys is the number of live keys.
func (s *Snapshot) Keys(ctx context.Context) (int, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	return x.alive, nil
}

func (s *Snapshot) readBuckets(ctx context.Context, st *Status) error {
	count := func(n *int) func(k, v []byte) error {
		return func(_, _ []byte) error { *n++; return nil }
	}
	readers := []struct {
		bucket string
		fn     func(k, v []byte) error
	}{
		{"meta", func(k, v []byte) error {
			switch {
			case string(k) == "consistent_index" && len(v) == 8:
				st.ConsistentIndex = binary.BigEndian.Uint64(v)
			case string(k) == "term" && len(v) == 8:
				st.Term = binary.BigEndian.Uint64(v)
			case string(k) == "storageVersion":
				st.StorageVersion = versionText(v)
			}
			return nil
		}},
		{"cluster", func(k, v []byte) error {
			if string(k) == "clusterVersion" {
				st.ClusterVersion = versionText(v)
			}
			return nil
		}},
		{"lease", count(&st.Leases)},
		{"alarm", st.addAlarm},
		{"authUsers", count(&st.AuthUsers)},
		{"authRoles", count(&st.AuthRoles)},
		{"auth", func(k, v []byte) error {
			if string(k) == "authEnabled" {
				st.AuthEnabled = len(v) == 1 && v[0] == 1
			}
			return nil
		}},
	}
	for _, r := range readers {
		if err := s.entries(ctx, r.bucket, r.fn); err != nil {
			return err
		}
	}
	st.EtcdVersion = etcdVersion(*st)
	var err error
	st.Members, err = s.readMembers(ctx)
	return err
}

// versionText copies a version out of the mapping. One has a few digits; what is longer is none.
func versionText(v []byte) string { return string(v[:min(len(v), 64)]) }

// etcdVersion is what the schema of the file tells (etcd server/storage/schema/schema.go): storageVersion is written since
// 3.6, the raft term since 3.5.
func etcdVersion(st Status) string {
	switch {
	case st.StorageVersion != "":
		return st.StorageVersion
	case st.Term != 0:
		return "3.5"
	}
	return "3.4 or older"
}

// contentHash is the hash of "etcdutl snapshot status": CRC-32C over the name and then the keys and values of each bucket. It
// depends on the content alone, not on pages.
func (s *Snapshot) contentHash(ctx context.Context) (uint32, error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	var sum uint32
	for i := range s.buckets {
		sum = crc32.Update(sum, table, []byte(s.buckets[i].name))
		err := s.entries(ctx, s.buckets[i].name, func(k, v []byte) error {
			sum = crc32.Update(crc32.Update(sum, table, k), table, v)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}
