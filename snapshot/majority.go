package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// errPeer is the error for the log of Config.Peers.
var errPeer = finding.WithLasting(errors.New("the log of another member cannot be used"),
	"--peer takes the data directory of another member of this cluster")

// majority returns the last entry that is committed by the logs of this member and of others: one
// of them knows it, or a majority of the voters holds it.
//
// An entry of a majority may still be replaced, by a leader of a later term that lacks it (the Raft
// paper, figure 8). Such a leader has the votes of a majority, one of them from a holder of the
// entry, who then knows the later term. So the entry is committed if no holder knows a later term,
// or if the logs of all voters are known and no log has an entry of a later term.
func (t *tail) majority(ctx context.Context, peers []string, voters []uint64) (last uint64, err error) {
	logs := []*wal.Log{t.log}
	for _, path := range peers {
		d, is := findDataDir(path)
		if !is {
			d.log = path
		}
		log, err := wal.Scan(ctx, d.log, t.end+1)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%w: %s: %w", errPeer, path, err)
		case log.Cluster != t.log.Cluster || !slices.Contains(voters, log.Node):
			return 0, fmt.Errorf("%w: %s: it is the log of member %x of cluster %x, which is no voter of cluster %x",
				errPeer, path, log.Node, log.Cluster, t.log.Cluster)
		}
		if !slices.ContainsFunc(logs, func(l *wal.Log) bool { return l.Node == log.Node }) {
			logs = append(logs, log)
		}
	}
	terms := make([]map[uint64]uint64, len(logs)) // of the entries after t.end
	latest := uint64(0)
	for i, log := range logs {
		terms[i] = map[uint64]uint64{}
		one := tail{log: log}
		err := one.each(ctx, t.end+1, log.Last, func(e wal.Entry) error {
			latest = max(latest, e.Term)
			if e.Index <= t.log.Last {
				terms[i][e.Index] = e.Term
			}
			return nil
		})
		if err != nil {
			return 0, logError(err)
		}
	}
	last = t.end
	for n := t.end + 1; n <= t.log.Last; n++ {
		term := terms[0][n]
		holders, known, later := 0, false, false
		for i, log := range logs {
			if terms[i][n] == term {
				holders++
				known, later = known || n <= log.Commit, later || log.Term > term
			}
		}
		if known || 2*holders > len(voters) && (!later || len(logs) == len(voters) && latest <= term) {
			last = n
		}
	}
	return last, nil
}
