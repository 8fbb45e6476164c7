package snapshot

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/etcdbrctl"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Errors of a data directory.
var (
	// ErrRunning is returned for a data directory whose database an etcd has open.
	ErrRunning = finding.WithHint(errors.New("an etcd uses the data directory"),
		"take a snapshot of the running member with \"etcdshift save OUT\", or stop the member")
	// ErrLog is returned for a data directory whose log is missing, is damaged, or does not
	// continue the database.
	ErrLog = wal.ErrUnusable

	// errNoGivenLog is ErrLog for a folder of Config.LogDir without a log.
	errNoGivenLog = finding.WithLasting(ErrLog, "give the folder of this member's log, with its files *.wal")
)

// dataDir is the data directory of a member.
type dataDir struct {
	db  string // the path of the database
	log string // the folder of the log
	own bool   // the log is that of the directory

	peers []string // data directories of other members
}

// findDataDir returns the parts of a data directory, or of its folder "member".
func findDataDir(path string) (d dataDir, is bool) {
	for _, member := range []string{filepath.Join(path, "member"), path} {
		d = dataDir{filepath.Join(member, "snap", "db"), filepath.Join(member, "wal"), true, nil}
		if info, err := os.Stat(d.db); err == nil && info.Mode().IsRegular() {
			return d, true
		}
	}
	return d, false
}

// IsFolder reports whether [Open] reads the folder at path: the data directory of an etcd member or
// its folder "member", or a folder with snapshots of etcdbrctl.
func IsFolder(path string) bool {
	_, is := findDataDir(path)
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
	d, is := findDataDir(in.path)
	if !is {
		return 0, fmt.Errorf("%w: a directory without member/snap/db is not the data directory of an etcd "+
			"member, and this one has no snapshots of etcdbrctl", ErrNotSnapshot)
	}
	if cfg.LogDir != "" {
		d.log, d.own = cfg.LogDir, false
	}
	d.peers = cfg.Peers
	size, err = in.loadMember(ctx, cfg, d)
	if received := d.received(err); received != "" { // a server takes it for its database
		d.db = received
		return in.loadMember(ctx, cfg, d)
	}
	return size, err
}

// received returns the path of the database that a member received from its leader before the first
// entry of its log; "" if err is no gap, or without such a file.
func (d dataDir) received(err error) string {
	var missing gap
	if !errors.As(err, &missing) {
		return ""
	}
	path := filepath.Join(filepath.Dir(d.db), fmt.Sprintf("%016x.snap.db", missing.first-1))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// loadMember is loadDirectory for the parts of a data directory.
func (in *input) loadMember(ctx context.Context, cfg Config, d dataDir) (size int64, err error) {
	f, err := openNow(d.db)
	if err != nil {
		return 0, err
	}
	defer func() {
		if in.file != f {
			err = errors.Join(err, f.Close())
		}
	}()
	if inUse(f) {
		return 0, ErrRunning
	}
	info, err := in.watch(d.db)
	if err != nil {
		return 0, err
	}
	base, err := Open(ctx, d.db, Config{SkipDigest: true, File: f, KeepFile: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	t, err := newTail(ctx, base, d)
	if err != nil {
		return 0, err
	}
	t.most = cfg.limit()
	in.directory = &DataDir{
		Cluster: strconv.FormatUint(t.log.Cluster, 16), Member: strconv.FormatUint(t.log.Node, 16),
		Database: t.begin, Entry: t.end, Uncommitted: t.log.Last - t.end,
	}
	in.logFolder = d.log
	for _, path := range t.log.Files() {
		if _, err := in.watch(path); err != nil {
			return 0, err
		}
	}
	if t.end == t.begin {
		in.file = f
		in.warn("a data directory: its log has no entry after the database")
		return info.Size(), t.say(ctx, in)
	}
	out, err := scratch(cfg)
	if err != nil {
		return 0, err
	}
	in.file = out
	if size, err = t.write(ctx, out); err != nil {
		return 0, err
	}
	in.warn("a data directory: its database ends with entry %d, and %d later entries of its log are added", t.begin,
		t.end-t.begin)
	return size, t.say(ctx, in)
}

// watch lets unchanged compare the file at path with its state of now.
func (in *input) watch(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		in.watched = append(in.watched, watchedFile{path, info})
	}
	return info, reason(err)
}

// tail is the part of a log after a database.
type tail struct {
	base       *Snapshot
	log        *wal.Log
	begin, end uint64 // the entry of the database, and the last one to apply
	change     uint64 // the last entry that the voters of the database decide about
	members    int    // entries that change members, not applied
	peers      bool   // logs of other members are known
	most       int64  // limit of the bytes of the records
	why        string // later entries are left out; "" if they may not be committed
}

// newTail finds the entries of the log that a restarted server applies to base.
func newTail(ctx context.Context, base *Snapshot, d dataDir) (*tail, error) {
	st, err := base.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	t := &tail{base: base, begin: st.ConsistentIndex}
	if t.log, err = wal.Scan(ctx, d.log, t.begin); err != nil {
		if errors.Is(err, wal.ErrMissing) && !d.own {
			return nil, fmt.Errorf("%w: %w", errNoGivenLog, err)
		}
		return nil, wal.Unusable(err)
	}
	voters, err := voterSets(ctx, base, &st)
	if err != nil {
		return nil, err
	}
	t.end = min(t.log.Last, max(t.begin, t.log.Commit))
	switch first := max(t.log.First, 1); {
	case first > t.begin+1:
		err = gap{t.begin, first}
	case t.log.Last < t.begin:
		err = fmt.Errorf("the database ends with entry %d, and the log with entry %d: they are not of the same "+
			"member, or the log lost its end", t.begin, t.log.Last)
	default:
		err = t.checkTerm(ctx, st.Term)
	}
	if err != nil {
		return nil, wal.Unusable(err)
	}
	if voters, err = t.findChange(ctx, voters); err != nil {
		return nil, wal.Unusable(err)
	}
	others := func(set []uint64) bool { return len(set) != 1 || set[0] != t.log.Node }
	if len(voters) > 0 && !slices.ContainsFunc(voters, others) { // a lone voter commits all
		t.end = max(t.end, t.change)
	}
	if t.peers = len(d.peers) > 0; t.peers {
		t.end, err = t.majority(ctx, d.peers, voters)
	}
	return t, err
}

// gap is the error for a log that begins too late.
type gap struct{ database, first uint64 }

func (g gap) Error() string {
	return fmt.Sprintf("the database ends with entry %d, and the log begins with entry %d: etcd does not start "+
		"(\"failed to find database snapshot file\")", g.database, g.first)
}

// checkTerm compares the term of the database with the term of its entry in the log, if both are
// known.
func (t *tail) checkTerm(ctx context.Context, term uint64) error {
	if term == 0 || t.log.First == 0 || t.begin < t.log.First {
		return nil
	}
	for e, err := range t.log.Entries(ctx, t.begin) {
		if err != nil || e.Index == t.begin && e.Term == term {
			return err
		}
		return fmt.Errorf("entry %d is of term %d in the log, and of term %d in the database: they are not of the "+
			"same member", t.begin, e.Term, term)
	}
	return nil
}

// write writes the database after the entries to an empty file, and returns its size.
func (t *tail) write(ctx context.Context, out *os.File) (size int64, err error) {
	err = t.base.Guard(func() error {
		size, err = t.image(ctx, out)
		return err
	})
	return size, wal.UnusableIfDamaged(err)
}

// image is write within the guard of the database: a copy of the pages, and new pages for the
// records and the other changes.
func (t *tail) image(ctx context.Context, out *os.File) (int64, error) {
	var r *replay.Replay
	var term uint64
	records := func(add func(*Record) error) (err error) {
		if r, err = t.base.replay(ctx, t.log, t.most, add); err != nil {
			return err
		}
		return t.log.Each(ctx, t.begin+1, t.end, func(e wal.Entry) error {
			term = e.Term
			return r.Apply(ctx, e)
		})
	}
	return t.base.onTop(ctx, out, records, func() map[string]map[string][]byte {
		r.Set(mvcc.MetaBucket, []byte("consistent_index"), binary.BigEndian.AppendUint64(nil, t.end))
		r.Set(mvcc.MetaBucket, []byte("term"), binary.BigEndian.AppendUint64(nil, term))
		t.members = r.Members
		return r.Edits
	})
}

// say warns about the end of the log, about changed members, and about entries that were left out.
func (t *tail) say(ctx context.Context, in *input) error {
	if t.log.Torn != "" {
		in.warn("%s: the last entry is incomplete; it is left out, as etcd does after a crash", t.log.Torn)
	}
	if t.members > 0 {
		in.warn("%d of these entries change members of the cluster and are not applied: the members shown are "+
			"those of the database", t.members)
	}
	var keys []string
	n := 0
	err := t.log.Each(ctx, t.end+1, t.log.Last, func(e wal.Entry) error {
		n++
		return e.Keys(func(key []byte) {
			if len(keys) < maxNamed && !slices.Contains(keys, string(key)) {
				keys = append(keys, string(mvcc.Clip(key)))
			}
		})
	})
	if err != nil {
		return wal.Unusable(err)
	}
	if n > 0 {
		text := ""
		if len(keys) > 0 {
			text = fmt.Sprintf("; they write %q", keys)
		}
		if len(keys) == maxNamed {
			text += " and others"
		}
		why := "this member does not know whether they are committed, and other members may have them"
		if t.peers {
			why = "the logs do not prove that they are committed"
		}
		why = cmp.Or(t.why, why)
		in.warn("%d entries of the log after entry %d are left out: %s%s", n, t.end, why, text)
	}
	return nil
}

// maxNamed limits the keys in a warning.
const maxNamed = 20
