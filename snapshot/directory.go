package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/etcdshift/etcdshift/snapshot/internal/etcdbrctl"
	"github.com/etcdshift/etcdshift/snapshot/internal/member"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Errors of a data directory.
var (
	// ErrRunning is returned for a data directory whose database an etcd has open.
	ErrRunning = member.ErrRunning
	// ErrLog is returned for a data directory whose log is missing, is damaged, or does not
	// continue the database.
	ErrLog = wal.ErrUnusable
)

// PeerError is an error about a member of Config.Peers.
type PeerError = member.PeerError

// IsFolder reports whether [Open] reads the folder at path: the data directory of an etcd member or
// its folder "member", or a folder with snapshots of etcdbrctl.
func IsFolder(path string) bool {
	_, is := member.Find(path)
	if !is {
		_, _, is, _ = etcdbrctl.Find(path, etcdbrctl.Until{})
	}
	return is
}

// DataDir describes a data directory.
type DataDir struct {
	Cluster  string `json:"cluster"`  // id, lower-case hex
	Member   string `json:"member"`   // id, lower-case hex
	Database uint64 `json:"database"` // last entry of the log in the database
	Entry    uint64 `json:"entry"`    // last entry in the snapshot
	// Uncommitted is the number of later entries, which this member does not know to be committed.
	Uncommitted uint64 `json:"uncommitted"`
}

// DataDir describes the data directory of the snapshot; nil for a file.
func (in *input) DataDir() *DataDir { return in.directory }

// loadDirectory opens the database of a data directory. If entries of the log follow it, in.file is
// a scratch file with the database after these entries, which a restarted server would have.
func (in *input) loadDirectory(ctx context.Context, cfg Config) (size int64, err error) {
	d, is := member.Find(in.path)
	if !is {
		return 0, fmt.Errorf("%w: a directory without member/snap/db is not the data directory of an etcd "+
			"member, and this one has no snapshots of etcdbrctl", ErrNotSnapshot)
	}
	if cfg.LogDir != "" {
		d.Log, d.IsGiven = cfg.LogDir, true
	}
	d.Peers = cfg.Peers
	size, err = in.loadMember(ctx, cfg, d)
	if received := d.Received(err); received != "" { // a server takes it for its database
		d.Database = received
		return in.loadMember(ctx, cfg, d)
	}
	return size, err
}

// loadMember is loadDirectory for the parts of a data directory.
func (in *input) loadMember(ctx context.Context, cfg Config, d member.Dir) (size int64, err error) {
	f, err := member.OpenDatabase(d.Database)
	if err != nil {
		return 0, err
	}
	defer func() {
		if in.file != f {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := in.watch(d.Database)
	if err != nil {
		return 0, err
	}
	base, err := Open(ctx, d.Database, Config{SkipDigest: true, File: f, KeepFile: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	state, err := memberState(ctx, base)
	if err != nil {
		return 0, err
	}
	t, err := member.NewTail(ctx, d, state)
	if err != nil {
		return 0, err
	}
	in.directory = &DataDir{
		Cluster: strconv.FormatUint(t.Log.Cluster, 16), Member: strconv.FormatUint(t.Log.Node, 16),
		Database: t.Begin, Entry: t.End, Uncommitted: t.Log.Last - t.End,
	}
	in.logFolder = d.Log
	for _, path := range t.Log.Files() {
		if _, err := in.watch(path); err != nil {
			return 0, err
		}
	}
	if t.End == t.Begin {
		in.file = f
		in.warn("a data directory: its log has no entry after the database")
		return info.Size(), in.warnOf(t.Warnings(ctx))
	}
	out, err := scratch(cfg)
	if err != nil {
		return 0, err
	}
	in.file = out
	if size, err = follow(ctx, base, t, out, cfg.limit()); err != nil {
		return 0, err
	}
	in.warn("a data directory: its database ends with entry %d, and %d later entries of its log are added", t.Begin,
		t.End-t.Begin)
	return size, in.warnOf(t.Warnings(ctx))
}

// watch lets unchanged compare the file at path with its state of now.
func (in *input) watch(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		in.watched = append(in.watched, watchedFile{path, info})
	}
	return info, reason(err)
}

// warnOf adds warnings, and returns the error.
func (in *input) warnOf(warnings []string, err error) error {
	in.warnings = append(in.warnings, warnings...)
	return err
}

// memberState returns the state of s for its log.
func memberState(ctx context.Context, s *Snapshot) (db member.State, err error) {
	st, err := s.Cluster(ctx)
	if err != nil {
		return db, err
	}
	db = member.State{Entry: st.ConsistentIndex, Term: st.Term}
	for _, m := range st.Members {
		db.Members = append(db.Members, member.Member{ID: m.ID, Learner: m.Learner})
	}
	return db, s.entries(ctx, mvcc.MetaBucket, func(k, v []byte) error {
		if string(k) == "confState" {
			db.ConfState = append([]byte{}, v...)
		}
		return nil
	})
}

// follow writes s after the entries of t to an empty file, and returns its size: a copy of the
// pages, and new pages for the records and the other changes. The records have at most most bytes.
func follow(ctx context.Context, s *Snapshot, t *member.Tail, out *os.File, most int64) (size int64, err error) {
	var r *replay.Replay
	var term uint64
	records := func(add func(*Record) error) (err error) {
		if r, err = replayOn(ctx, s, t.Log, most, add); err != nil {
			return err
		}
		return t.Log.Each(ctx, t.Begin+1, t.End, func(e wal.Entry) error {
			term = e.Term
			return r.Apply(ctx, e)
		})
	}
	err = s.Guard(func() error {
		size, err = s.onTop(ctx, out, records, func() map[string]map[string][]byte {
			r.Set(mvcc.MetaBucket, []byte("consistent_index"), binary.BigEndian.AppendUint64(nil, t.End))
			r.Set(mvcc.MetaBucket, []byte("term"), binary.BigEndian.AppendUint64(nil, term))
			t.Members = r.Members
			return r.Edits
		})
		return err
	})
	return size, wal.UnusableIfDamaged(err)
}
