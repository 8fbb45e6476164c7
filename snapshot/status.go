package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Status describes a file: metadata, and counts from a scan.
type Status struct {
	Path      string   `json:"path"`
	Bytes     int64    `json:"bytes"`     // of the file as given
	Raw       bool     `json:"raw"`       // a member/snap/db, not an etcdctl snapshot
	PageSize  int      `json:"pageSize"`  // bytes
	Pages     uint64   `json:"pages"`     // of the image
	FreePages uint64   `json:"freePages"` // pages without a reference; they may hold old values
	SHA256    string   `json:"sha256"`    // of the file, as in sha256sum; empty if skipped
	Digest    string   `json:"digest"`    // "ok", "none" (raw) or "skipped"
	Hash      string   `json:"hash"`      // as in "etcdutl snapshot status": eight hex digits
	HashKV    string   `json:"hashKV"`    // as in "etcdctl endpoint hashkv" of a server started on the file
	Warnings  []string `json:"warnings,omitempty"`

	Compression   string `json:"compression,omitempty"`   // "gzip", "zstd", "zip", "tar" or "etcdbrctl"
	ExpandedBytes int64  `json:"expandedBytes,omitempty"` // size of the expanded file

	DataDir *DataDir `json:"dataDir,omitempty"` // of a data directory

	Revision         int64 `json:"revision"`         // current revision of a server started on the file
	LastRecord       int64 `json:"lastRecord"`       // revision in "etcdutl snapshot status", may be lower
	CompactRevision  int64 `json:"compactRevision"`  // finished, 0 for none
	ScheduledCompact int64 `json:"scheduledCompact"` // 0 for none; above CompactRevision after an interruption
	Records          int   `json:"records"`          // in the key bucket, tombstones included
	Tombstones       int   `json:"tombstones"`
	EmptyRecords     int   `json:"emptyRecords"` // from --bump-revision
	Keys             int   `json:"keys"`         // live

	StorageVersion  string   `json:"storageVersion,omitempty"` // etcd 3.6 and later
	ClusterVersion  string   `json:"clusterVersion,omitempty"`
	EtcdVersion     string   `json:"etcdVersion"` // from the content: "3.7", "3.5", "3.4 or older"
	ConsistentIndex uint64   `json:"consistentIndex"`
	Term            uint64   `json:"term"`
	Leases          int      `json:"leases"`
	LeasedKeys      int      `json:"leasedKeys"` // live keys with a lease; a restore restarts the lease
	Alarms          []Raised `json:"alarms"`     // kept by a restore
	AuthEnabled     bool     `json:"authEnabled"`
	AuthUsers       int      `json:"authUsers"`
	AuthRoles       int      `json:"authRoles"`
	Members         []Member `json:"members,omitempty"`
}

// Member is an etcd member in the members bucket. A restore replaces all members. An unreadable
// member has only an ID, a member that never started only ID and URLs.
type Member struct {
	ID       string   `json:"id"` // lower-case hex
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"learner,omitempty"` // no vote
}

// Alarm is a kind of alarm raised by a member, in etcd's words.
type Alarm string

// The alarms known to etcd (etcd api/etcdserverpb/rpc.proto, AlarmType).
const (
	AlarmNoSpace Alarm = "NOSPACE"
	AlarmCorrupt Alarm = "CORRUPT"
)

// Raised is an alarm of a member. Under NOSPACE a cluster accepts no writes.
type Raised struct {
	Kind   Alarm  `json:"kind"`
	Member string `json:"member"` // id, lower-case hex
}

// Memory limits for a hostile file. A cluster has a handful of members with a few URLs and two
// kinds of alarm each.
const (
	maxMembers = 1 << 8
	maxAlarms  = 2 * maxMembers
	maxVersion = 64 // bytes
)

// Status reads the whole content and waits for the digest. An error of the digest is returned with
// an otherwise complete Status. Hash is the hash of "etcdutl snapshot status", over all buckets:
// Hash depends only on the content, not on pages. HashKV is that of [Snapshot.Restored] without a
// bump.
func (s *Snapshot) Status(ctx context.Context) (Status, error) {
	st, err := s.Counts(ctx)
	if err != nil {
		return Status{}, err
	}
	hash, hashKV, err := s.checksums(ctx)
	if err != nil {
		return Status{}, err
	}
	st.Hash, st.HashKV = fmt.Sprintf("%08x", hash), strconv.FormatUint(uint64(hashKV), 10)
	return st, st.addDigest(s.Digest(ctx))
}

// Facts is Status without Hash and HashKV, and reads no values of records.
func (s *Snapshot) Facts(ctx context.Context) (Status, error) {
	st, err := s.Counts(ctx)
	if err != nil {
		return st, err
	}
	return st, st.addDigest(s.Digest(ctx))
}

// addDigest adds the result of Digest, and returns its error.
func (st *Status) addDigest(d Digest, err error) error {
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

// Counts is Facts without SHA256 and Digest, and does not wait for the digest.
func (s *Snapshot) Counts(ctx context.Context) (Status, error) {
	x, err := s.index(ctx)
	if err != nil {
		return Status{}, err
	}
	st, err := s.Cluster(ctx)
	if err != nil {
		return Status{}, err
	}
	st.Path, st.Bytes, st.Raw, st.Warnings = s.path, s.Size(), s.raw, s.warnings
	st.DataDir = s.directory
	st.PageSize, st.Pages, st.FreePages = s.db.PageSize, s.db.HighWater, s.db.Free
	st.Revision, st.LastRecord = x.revision(), x.last.Main
	st.CompactRevision, st.ScheduledCompact = x.finished, x.scheduled
	st.Records, st.Tombstones, st.EmptyRecords = x.total()-x.empty, x.tombstones, x.empty
	st.Keys, st.LeasedKeys = x.alive, x.leased
	if err := s.FreeList(); err != nil {
		st.Warnings = append(slices.Clone(st.Warnings), err.Error())
	}
	if s.compression != "" {
		st.Compression, st.ExpandedBytes = s.compression, int64(len(s.data))
	}
	return st, nil
}

// StartsOn reports whether a release of etcd is older than the versions in the file, and whether
// its server starts on the file: from 3.6 on, an older one does not (etcd server/storage/schema).
func (st *Status) StartsOn(release string) (older, starts bool) {
	older = mvcc.IsOlder(release, st.StorageVersion) || mvcc.IsOlder(release, st.ClusterVersion)
	return older, !older || mvcc.IsOlder(release, "3.6")
}

// Cluster returns the part of Counts that needs no records: versions, raft, leases, alarms, users
// and members. After an error in one bucket the others are still read.
func (s *Snapshot) Cluster(ctx context.Context) (Status, error) {
	st := Status{Alarms: []Raised{}, EtcdVersion: "3.4 or older"}
	var first error
	for i := range s.db.Buckets {
		if name := s.db.Buckets[i].Name; name != "key" {
			err := s.entries(ctx, name, func(k, v []byte) error { return st.add(name, k, v) })
			first = cmp.Or(first, err)
		}
	}
	switch { // etcd server/storage/schema/schema.go
	case st.StorageVersion != "": // since 3.6
		st.EtcdVersion = st.StorageVersion
	case st.Term != 0: // since 3.5
		st.EtcdVersion = "3.5"
	}
	return st, first
}

// entries calls fn with every entry of the named bucket; a missing bucket has no entries.
func (s *Snapshot) entries(ctx context.Context, bucket string, fn func(k, v []byte) error) error {
	return s.read(func() error {
		entries := s.db.Entries(ctx, s.db.Bucket(bucket))
		return stream.Each(entries, func(el bolt.Element) error { return fn(el.Key, el.Value) })
	})
}

// Leases returns the time that each lease has left when a server starts, in seconds, by lease ID:
// its time to live, or what was left of it at the last checkpoint (etcd server/lease/lessor.go;
// only with the feature LeaseCheckpoint).
func (s *Snapshot) Leases(ctx context.Context) (map[int64]int64, error) {
	leases := map[int64]int64{}
	err := s.entries(ctx, mvcc.LeaseBucket, func(k, v []byte) error {
		if err := mvcc.CheckEntry(mvcc.LeaseBucket, k, v); err != nil && !errors.Is(err, mvcc.ErrOdd) {
			return err
		}
		l, err := mvcc.ParseLease(v)
		if err != nil {
			return err
		}
		if leases[l.ID] = l.TTL; l.Remaining > 0 {
			leases[l.ID] = l.Remaining
		}
		return nil
	})
	return leases, err
}

// Note returns the note with the name, or nil. Notes are written by [Build] and kept by a restore
// and by Write.
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

// add adds an entry of any bucket except "key".
func (st *Status) add(bucket string, k, v []byte) error {
	switch bucket {
	case mvcc.LeaseBucket:
		st.Leases++
	case "alarm":
		return st.addAlarm(k, v)
	case "authUsers":
		st.AuthUsers++
	case "authRoles":
		st.AuthRoles++
	case "members":
		if len(st.Members) == maxMembers {
			return fmt.Errorf("%w: bucket \"members\": more than %d members", ErrDamaged, maxMembers)
		}
		m, _ := mvcc.ParseMember(v)
		st.Members = append(st.Members, Member{string(mvcc.Clip(k)), m.Name, m.PeerURLs, m.Learner})
	}
	version := string(v[:min(len(v), maxVersion)])
	switch key := bucket + "/" + string(mvcc.Clip(k)); {
	case key == "meta/consistent_index":
		st.ConsistentIndex, _ = mvcc.ParseNumber(v)
	case key == "meta/term":
		st.Term, _ = mvcc.ParseNumber(v)
	case key == "meta/storageVersion":
		st.StorageVersion = version
	case key == "cluster/clusterVersion":
		st.ClusterVersion = version
	case key == "auth/authEnabled":
		st.AuthEnabled = len(v) == 1 && v[0] == 1
	}
	return nil
}

// addAlarm adds an entry of the alarm bucket. The key of the entry is an etcdserverpb.AlarmMember.
func (st *Status) addAlarm(k, v []byte) error {
	if len(st.Alarms) == maxAlarms {
		return fmt.Errorf("%w: bucket \"alarm\": more than %d alarms", ErrDamaged, maxAlarms)
	}
	if err := mvcc.CheckEntry("alarm", k, v); err != nil && !errors.Is(err, mvcc.ErrOdd) {
		return err
	}
	a, err := mvcc.ParseAlarm(k)
	if err != nil {
		return err
	}
	name := cmp.Or(mvcc.AlarmName(a.Kind), fmt.Sprint(a.Kind))
	st.Alarms = append(st.Alarms, Raised{Alarm(name), strconv.FormatUint(a.Member, 16)})
	return nil
}
