package member

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// errPeer is the error for the log of Config.Peers.
var errPeer = finding.WithLasting(errors.New("the log of another member cannot be used"),
	"--peer takes the data directory of another member of this cluster")

// PeerError is an error about a member of Config.Peers.
type PeerError struct {
	Path         string // as in Config.Peers
	OtherCluster bool   // the log is of another cluster
	Err          error
}

func (e *PeerError) Error() string { return fmt.Sprintf("%v: %s: %v", errPeer, e.Path, e.Err) }

// Unwrap returns the cause first: its hint counts more.
func (e *PeerError) Unwrap() []error { return []error{e.Err, errPeer} }

// peer is another member.
type peer struct {
	path string
	log  *wal.Log
}

// openPeer reads the log of another member.
func (t *Tail) openPeer(ctx context.Context, path string) (peer, error) {
	d, is := Find(path)
	if !is {
		d.Log = path
	} else if f, err := OpenDatabase(d.Database); err != nil {
		return peer{}, &PeerError{Path: path, Err: err}
	} else if err := f.Close(); err != nil {
		return peer{}, &PeerError{Path: path, Err: err}
	}
	log, err := wal.Scan(ctx, d.Log, t.End+1)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return peer{}, err
	case err != nil:
		return peer{}, &PeerError{Path: path, Err: err}
	case log.Cluster != t.Log.Cluster:
		return peer{}, &PeerError{path, true, fmt.Errorf("it is the log of member %x of cluster %x, and not of "+
			"cluster %x", log.Node, log.Cluster, t.Log.Cluster)}
	}
	return peer{path, log}, nil
}

// majority returns the last entry that is committed by the logs of this member and of others.
func (t *Tail) majority(ctx context.Context, paths []string, voters [][]uint64) (last uint64, err error) {
	var peers []peer
	for _, path := range paths {
		p, err := t.openPeer(ctx, path)
		if err != nil {
			return 0, err
		}
		is := func(other peer) bool { return other.log.Node == p.log.Node }
		if p.log.Node != t.Log.Node && !slices.ContainsFunc(peers, is) {
			peers = append(peers, p)
		}
	}
	return t.proven(ctx, peers, voters)
}

// identity identifies an entry with an index: in one cluster, entries of one term are equal.
type identity struct {
	term uint64
	sum  [sha256.Size]byte // of the data
}

// proven returns the last entry that is committed: a log with the entry knows it, or a majority of
// the voters holds it, and no earlier entry changes the voters.
//
// An entry of a majority may still be replaced, by a leader of a later term that lacks it (the Raft
// paper, figure 8). Such a leader has the votes of a majority, one of them from a holder of the
// entry, who then knows the later term. So the entry is committed if no holder knows a later term,
// or if the logs of all voters are known, end with one term, and have no entry of a later term. (A
// voter of an earlier term may have led since its log was copied.)
func (t *Tail) proven(ctx context.Context, peers []peer, voters [][]uint64) (last uint64, err error) {
	peers = slices.Insert(slices.Clone(peers), 0, peer{"", t.Log})
	held := make([]map[uint64]identity, len(peers)) // the entries after t.End
	latest, nodes, oneTerm := uint64(0), []uint64(nil), true
	for i, p := range peers {
		held[i] = map[uint64]identity{}
		nodes, oneTerm = append(nodes, p.log.Node), oneTerm && p.log.Term == t.Log.Term
		err := p.log.Each(ctx, t.End+1, p.log.Last, func(e wal.Entry) error {
			latest = max(latest, e.Term)
			if e.Index > t.Log.Last {
				return nil
			}
			held[i][e.Index] = identity{e.Term, sha256.Sum256(e.Data)}
			if own := held[0][e.Index]; own.term == e.Term && own != held[i][e.Index] {
				return &PeerError{Path: p.path, Err: fmt.Errorf("entry %d of term %d has other data: one of the logs "+
					"is from before a restore", e.Index, e.Term)}
			}
			return nil
		})
		if errors.As(err, new(*PeerError)) {
			return 0, err
		}
		if err != nil {
			return 0, wal.Unusable(err)
		}
	}
	whole := oneTerm && holds(nodes, voters, func(n, of int) bool { return n == of })
	last = t.End
	for n := t.End + 1; n <= t.Log.Last; n++ {
		entry := held[0][n]
		var holders []uint64
		known, later := false, false
		for i, p := range peers {
			if held[i][n] == entry {
				holders = append(holders, p.log.Node)
				known, later = known || n <= p.log.Commit, later || p.log.Term != entry.term
			}
		}
		most := n <= t.change && holds(holders, voters, func(n, of int) bool { return 2*n > of })
		if known || most && (!later || whole && latest <= entry.term) {
			last = n
		}
	}
	return last, nil
}

// holds reports whether enough members of each set of voters are among some members.
func holds(members []uint64, voters [][]uint64, enough func(n, of int) bool) bool {
	for _, set := range voters {
		n := 0
		for _, id := range set {
			if slices.Contains(members, id) {
				n++
			}
		}
		if !enough(n, len(set)) {
			return false
		}
	}
	return len(voters) > 0
}

// raftState is a raft ConfState.
type raftState struct {
	Voters   []uint64 `json:"voters"`
	Outgoing []uint64 `json:"voters_outgoing"` // of a joint change, which etcd does not use
}

// voters returns the sets of voting members by the database. A majority needs one of each set.
// There is no set if the database has neither members nor a raft state yet.
//
// A restore replaces the members, but not the raft state. Equal URLs and tokens give equal IDs: a
// raft state with the ID of a member may be older than the members, from another cluster. etcd 3.5
// may show a promoted member as a learner: the members may be older than the raft state. So both
// count. A raft state without the ID of a member is surely that of another cluster.
func (db *State) voters() [][]uint64 {
	var members, voters []uint64
	for _, m := range db.Members {
		id, err := strconv.ParseUint(m.ID, 16, 64)
		if err != nil {
			return [][]uint64{nil} // an unknown voter: no majority
		}
		members = append(members, id)
		if !m.Learner {
			voters = append(voters, id)
		}
	}
	if len(members) == 0 && db.ConfState == nil {
		return nil
	}
	sets, state := [][]uint64{voters}, parseRaftState(db.ConfState)
	if slices.ContainsFunc(state.Voters, func(id uint64) bool { return slices.Contains(members, id) }) {
		sets = append(sets, state.Voters)
		if len(state.Outgoing) > 0 {
			sets = append(sets, state.Outgoing)
		}
	}
	return sets
}

// findChange sets t.change, and returns the voters who decide up to it: those of the database, or
// those of the first entries of a new cluster.
func (t *Tail) findChange(ctx context.Context, voters [][]uint64) ([][]uint64, error) {
	t.change = t.Log.Last
	var first []uint64
	err := t.Log.Each(ctx, t.Begin+1, t.Log.Last, func(e wal.Entry) error {
		switch id := e.Added(); {
		case !e.Conf || e.Index > t.change:
		case t.Begin == 0 && len(voters) == 0 && id != 0 && e.Index <= t.Log.Commit:
			first = append(first, id)
		default:
			t.change = e.Index
		}
		return nil
	})
	if len(first) > 0 {
		voters = [][]uint64{first}
	}
	return voters, err
}

// Voters returns the voting members of a raft state.
func Voters(confState []byte) []uint64 {
	state := parseRaftState(confState)
	return slices.Concat(state.Voters, state.Outgoing)
}

// parseRaftState decodes a raft state: empty if it is not readable, which Odd reports.
func parseRaftState(confState []byte) (state raftState) {
	if len(confState) <= mvcc.MaxMemberSize {
		_ = json.Unmarshal(confState, &state)
	}
	return state
}
