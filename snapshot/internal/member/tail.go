package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Tail is the part of a log after a database.
type Tail struct {
	Log        *wal.Log
	Begin, End uint64 // the entry of the database, and the last one to apply
	Members    int    // entries that change members, not applied
	Why        string // later entries are left out; "" if they may not be committed

	change uint64 // the last entry that the voters of the database decide about
	peers  bool   // logs of other members are known
}

// State has the facts of a database about its log and its cluster.
type State struct {
	Entry, Term uint64 // of the last entry; 0 if it is unknown
	Members     []Member
	ConfState   []byte // the raft state, nil for none
}

// Member is a member of the cluster.
type Member struct {
	ID      string // in hexadecimal
	Learner bool   // it has no vote
}

// NewTail finds the entries of the log that a restarted server applies to the database.
func NewTail(ctx context.Context, d Dir, db State) (t *Tail, err error) {
	t = &Tail{Begin: db.Entry}
	if t.Log, err = wal.Scan(ctx, d.Log, t.Begin); err != nil {
		if errors.Is(err, wal.ErrMissing) && d.IsGiven {
			return nil, fmt.Errorf("%w: %w", errNoGivenLog, err)
		}
		return nil, wal.Unusable(err)
	}
	voters := db.voters()
	t.End = min(t.Log.Last, max(t.Begin, t.Log.Commit))
	switch first := max(t.Log.First, 1); {
	case first > t.Begin+1:
		err = gap{t.Begin, first}
	case t.Log.Last < t.Begin:
		err = fmt.Errorf("the database ends with entry %d, and the log with entry %d: they are not of the same "+
			"member, or the log lost its end", t.Begin, t.Log.Last)
	default:
		err = t.checkTerm(ctx, db.Term)
	}
	if err != nil {
		return nil, wal.Unusable(err)
	}
	if voters, err = t.findChange(ctx, voters); err != nil {
		return nil, wal.Unusable(err)
	}
	others := func(set []uint64) bool { return len(set) != 1 || set[0] != t.Log.Node }
	if len(voters) > 0 && !slices.ContainsFunc(voters, others) { // a lone voter commits all
		t.End = max(t.End, t.change)
	}
	if t.peers = len(d.Peers) > 0; t.peers {
		t.End, err = t.majority(ctx, d.Peers, voters)
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
func (t *Tail) checkTerm(ctx context.Context, term uint64) error {
	if term == 0 || t.Log.First == 0 || t.Begin < t.Log.First {
		return nil
	}
	for e, err := range t.Log.Entries(ctx, t.Begin) {
		if err != nil || e.Index == t.Begin && e.Term == term {
			return err
		}
		return fmt.Errorf("entry %d is of term %d in the log, and of term %d in the database: they are not of the "+
			"same member", t.Begin, e.Term, term)
	}
	return nil
}

// Warnings returns warnings about the end of the log, about changed members, and about entries that
// were left out.
func (t *Tail) Warnings(ctx context.Context) (warnings []string, err error) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if t.Log.Torn != "" {
		warn("%s: the last entry is incomplete; it is left out, as etcd does after a crash", t.Log.Torn)
	}
	if t.Members > 0 {
		warn("%d of these entries change members of the cluster and are not applied: the members shown are "+
			"those of the database", t.Members)
	}
	var keys []string
	n := 0
	err = t.Log.Each(ctx, t.End+1, t.Log.Last, func(e wal.Entry) error {
		n++
		return e.Keys(func(key []byte) {
			if len(keys) < maxNamed && !slices.Contains(keys, string(key)) {
				keys = append(keys, string(mvcc.Clip(key)))
			}
		})
	})
	if err != nil {
		return nil, wal.Unusable(err)
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
		why = cmp.Or(t.Why, why)
		warn("%d entries of the log after entry %d are left out: %s%s", n, t.End, why, text)
	}
	return warnings, nil
}

// maxNamed limits the keys in a warning.
const maxNamed = 20
