package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// statuses is the document of status -o json for several snapshots.
type statuses struct {
	answerHead
	Snapshots []snapshot.Status `json:"snapshots"` // as given
	Pairs     []statusPair      `json:"pairs"`
	Verdict   string            `json:"verdict"`        // a sentence
	Best      string            `json:"best,omitempty"` // the path of the snapshot to restore; none if unknown
	Parted    bool              `json:"parted"`         // some snapshots have other records, or nothing to compare
}

// statusPair is the comparison of two snapshots, by their numbers, from 0.
type statusPair struct {
	A int `json:"a"`
	B int `json:"b"`
	compare.Parting
	Relation relation `json:"relation"`
	Reason   string   `json:"reason,omitempty"` // of "other cluster"
}

// relation is what two snapshots are to each other.
type relation string

const (
	relationAgree    relation = "agree"  // equal up to the last revision of both
	relationParted   relation = "parted" // different records at a revision of both
	relationApart    relation = "apart"  // no revision of both
	relationStranger relation = "other cluster"
)

// statusSeveral compares snapshots, such as those of all members of a cluster.
func statusSeveral(c *cli.Context, files []*opened) error {
	doc := statuses{answerHead: answerTo("StatusComparison"), Pairs: []statusPair{}}
	for _, o := range files {
		st, err := o.Snapshot().Status(c.Context)
		if err != nil {
			return err
		}
		doc.Snapshots = append(doc.Snapshots, st)
	}
	for b := range files {
		for a := range b {
			pair, err := statusPairOf(c, files, a, b)
			if err != nil {
				return err
			}
			doc.Pairs = append(doc.Pairs, pair)
		}
	}
	doc.check()
	var err error
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, doc)
	} else {
		err = printStatuses(c, &doc)
	}
	if err == nil && doc.Parted {
		return &failure{exitFound, errors.New("the snapshots do not agree"), doc.next()}
	}
	return err
}

func statusPairOf(c *cli.Context, files []*opened, a, b int) (p statusPair, err error) {
	p.A, p.B = a, b
	same, why, err := compare.SameCluster(c.Context, files[a].Reader, files[b].Reader)
	if err != nil {
		return p, err
	}
	if same == compare.No {
		p.Relation, p.Reason = relationStranger, why
		return p, nil
	}
	p.Parting, err = compare.Part(c.Context, files[a].Snapshot(), files[b].Snapshot())
	switch {
	case !p.Comparable():
		p.Relation = relationApart
	case p.At > 0:
		p.Relation = relationParted
	default:
		p.Relation = relationAgree
	}
	return p, err
}

// agrees reports whether two snapshots agree.
func (d *statuses) agrees(i, j int) bool {
	return i == j || slices.ContainsFunc(d.Pairs, func(p statusPair) bool {
		return p.Relation == relationAgree && p.A == min(i, j) && p.B == max(i, j)
	})
}

// support returns how many snapshots hold a part of the history of a snapshot, including itself.
func (d *statuses) support(i int) (n int) {
	for j := range d.Snapshots {
		if d.agrees(i, j) && d.Snapshots[j].Revision <= d.Snapshots[i].Revision {
			n++
		}
	}
	return n
}

// check sets the verdict: the best snapshot has the support of a majority, and more than any that
// differs from it.
func (d *statuses) check() {
	best, all := 0, len(d.Snapshots)
	for i := range d.Snapshots {
		if d.support(i) > d.support(best) {
			best = i
		}
	}
	rivaled, equal := 2*d.support(best) <= all, true
	for i := range d.Snapshots {
		rivaled = rivaled || !d.agrees(i, best) && d.support(i) == d.support(best)
		equal = equal && d.Snapshots[i].Revision == d.Snapshots[best].Revision
	}
	d.Parted = slices.ContainsFunc(d.Pairs, func(p statusPair) bool { return p.Relation != relationAgree })
	if d.strangers() {
		d.Verdict = "the files are of different clusters: compare those of one cluster"
		return
	}
	if rivaled {
		d.Verdict = "no majority agrees: the files do not say which is right"
		return
	}
	d.Best = d.Snapshots[best].Path
	switch {
	case d.Parted:
		d.Verdict = fmt.Sprintf("%d of %d agree; %s is the newest of them", d.support(best), all, d.Best)
	case equal:
		d.Verdict = "all have the same records"
	default:
		d.Verdict = "all agree; " + d.Best + " is the newest"
	}
}

// strangers reports whether two files are of different clusters.
func (d *statuses) strangers() bool {
	return slices.ContainsFunc(d.Pairs, func(p statusPair) bool { return p.Relation == relationStranger })
}

// next returns the next command.
func (d *statuses) next() string {
	if d.strangers() {
		return "give the files of one cluster"
	}
	if line := d.save(); line != "" {
		return "save the entries that a majority of the logs has, and restore all members from OUT: " + line
	}
	if d.Best != "" {
		return "restore all members from that file: etcdshift restore " + d.Best + " --data-dir DIR"
	}
	return `"etcdshift diff OLD NEW" prints the objects that differ`
}

// save returns the command that makes a snapshot of the best of several data directories that agree
// with it; "" for another best file.
func (d *statuses) save() string {
	line, others := "", 0
	for i, st := range d.Snapshots {
		if st.Path == d.Best && st.DataDir != nil {
			line = "etcdshift save --data-dir " + transform.ShellWord(st.Path)
			for j, peer := range d.Snapshots {
				if j != i && peer.DataDir != nil && d.agrees(i, j) && peer.DataDir.Cluster == st.DataDir.Cluster {
					line += " --peer " + transform.ShellWord(peer.Path)
					others++
				}
			}
			break
		}
	}
	if others == 0 {
		return ""
	}
	return line + " OUT"
}

// describe returns what a pair has in common, as a sentence.
func (d *statuses) describe(p statusPair) (text string) {
	a, b := &d.Snapshots[p.A], &d.Snapshots[p.B]
	if x, y := a.DataDir, b.DataDir; x != nil && y != nil && x.Cluster != y.Cluster {
		defer func() { text += fmt.Sprintf("; their logs are of the clusters %s and %s", x.Cluster, y.Cluster) }()
	}
	switch p.Relation {
	case relationStranger:
		return fmt.Sprintf("%s and %s are of different clusters: %s", a.Path, b.Path, p.Reason)
	case relationApart:
		return fmt.Sprintf("%s and %s have no revision in common: one was compacted, or restored with a higher "+
			"revision", a.Path, b.Path)
	case relationParted:
		return fmt.Sprintf("%s and %s have different records at revision %d: %s", a.Path, b.Path, p.At,
			strings.Join(p.Keys, " and "))
	}
	if ahead := a.Revision - b.Revision; ahead < 0 {
		return fmt.Sprintf("%s lacks the last %s of %s", a.Path, revisions(-ahead), b.Path)
	} else if ahead > 0 {
		return fmt.Sprintf("%s lacks the last %s of %s", b.Path, revisions(ahead), a.Path)
	}
	return fmt.Sprintf("%s and %s have the same records", a.Path, b.Path)
}

func revisions(n int64) string { return phrase.Count(int(n), "revision") }

func printStatuses(c *cli.Context, d *statuses) error {
	p := render.NewPage(c.App.Writer)
	p.Printf("%s\n\n", render.Printable(d.Verdict))
	rows := stream.Mapped(d.Snapshots, func(st snapshot.Status) []any {
		return []any{st.Path, st.Revision, st.CompactRevision, st.Keys, st.Term, st.ConsistentIndex, st.HashKV,
			st.Digest}
	})
	p.Table([]any{"FILE", "REVISION", "COMPACTED", "KEYS", "TERM", "INDEX", "HASHKV", "DIGEST"}, rows...)
	p.Printf("\n")
	for _, pair := range d.Pairs {
		p.Printf("%s\n", render.Printable(d.describe(pair)))
	}
	if !d.Parted {
		p.Printf("\nnext: %s\n", render.Printable(d.next()))
	}
	return p.Flush()
}
