package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

func timelineCommand() *cli.Command {
	return &cli.Command{
		Name:      "timeline",
		Usage:     "show the changes of all objects, in order",
		ArgsUsage: "SNAPSHOT... [TYPE[/NAME]...]",
		Description: `etcdshift timeline before.db -n shop --since 1h
etcdshift timeline monday.db tuesday.db deploy,cm -l app=web --since 48211
etcdshift timeline before.db --manager helm -o jsonl
etcdshift timeline --wal /var/lib/etcd -n shop --since 2h`,
		UsageText: `Shows creations, updates and deletions by revision, each write once. A compaction keeps only the
last write of each key: the revisions without records are a gap, shown as one line. Several snapshots of one cluster
fill each other's gaps. "gone" means deleted in a gap.

etcd stores neither times nor users. A TIME is estimated from objects written shortly before and after, and is right
WITHIN some seconds; -o json has both bounds. A MANAGER is the manager of the newest entry in managedFields, which a
write without a change does not update; a deletion has no manager.

Renewals of Leases, Events and records of API servers about themselves are folded and counted; --all or their TYPE
shows them. --since and --until omit writes that are certainly earlier or later.

--free-pages also searches the free pages of the files, byte by byte, for writes that a compaction removed, and marks
them. Each one happened, but others may be missing: the gap is still shown.

--wal DIR stands for all SNAPSHOTs: the data directory of a stopped member, with the writes that compaction removed and its
write-ahead log still has, as "save --data-dir DIR --wal-history" writes them; nothing is written. If the first entries
of the log are gone, its history begins with --base EARLIER, or is inferred: only writes with a sure revision are shown.
Those before the first complete state are marked "from the log", and values from before the log are unknown.

Exit status: 0 shown, 1 damaged, or values could not be read, 2 usage, snapshots of two clusters, or a TYPE that no
snapshot has, 3 no history from the log with --wal, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "show objects in `NAMESPACE` (default: all)"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "show objects in logical cluster `NAME` of kcp (default: all)"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"},
				Usage: "show objects with labels that match `SELECTOR` at their last write"},
			&cli.StringFlag{Name: "manager", Usage: "show writes with the newest manager `NAME`"},
			&cli.StringFlag{Name: "since", Usage: "begin at `REVISION` or at a time: " + timeForms},
			&cli.StringFlag{Name: "until", Usage: "end with `REVISION` or at a time: " + timeForms},
			freePagesFlag("writes"),
			&cli.StringFlag{Name: "wal", Usage: "show the data directory `DIR` with the history of its log"},
			&cli.StringFlag{Name: "base",
				Usage: "with --wal, begin with the earlier snapshot `FILE` of the member"},
			&cli.BoolFlag{Name: "all", Usage: "fold nothing"},
			listFormats()),
		Action: func(c *cli.Context) error {
			switch dir := c.String("wal"); {
			case c.IsSet("wal") && dir == "":
				return usagef(commandPath(c), "--wal takes a data directory")
			case c.IsSet("wal"):
				return runTimeline(c, append([]string{dir}, c.Args().Slice()...))
			case c.IsSet("base"):
				return usagef(commandPath(c), "--base needs --wal: the history of the log begins with it")
			}
			return taking(runTimeline)(c)
		},
	}
}

func runTimeline(c *cli.Context, args []string) error {
	count := 1 // of snapshots
	for count < len(args) && (args[count] == "-" || namesSnapshot(args[count])) {
		count++
	}
	if c.IsSet("wal") && count > 1 { // records "from the log" would be marked in the others too
		return usagef(commandPath(c), "--wal takes no other SNAPSHOT; \"save --data-dir DIR --wal-history\" writes one")
	}
	for _, word := range args[count:] {
		sayType(c, word)
	}
	selector, err := labels.Parse(c.String("selector"))
	if err != nil {
		return usagef(commandPath(c), "--selector: %w", err)
	}
	if selector.Empty() {
		selector = nil
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	return snapshotFirst(c, args, readSnapshots(c, args[:count], func(files []*opened) error {
		reading.Of(part(1, 4, files...))
		m, err := merge(c, files)
		if err != nil {
			return err
		}
		if m.same == compare.No {
			return usagef(commandPath(c), "the snapshots are of different clusters; a timeline is of one")
		}
		t := &compare.Timeline{Sides: m.sides, Labels: selector, Manager: c.String("manager"), All: c.Bool("all"),
			Clock: &m.clock}
		if err := m.readTimes(c.Context); err != nil {
			return err
		}
		if err := limit(c, m, t, args[count:]); err != nil {
			return err
		}
		o, err := readHistoryOptions(c, m.newest())
		if err != nil {
			return err
		}
		if o.mark = "found in a free page"; c.IsSet("wal") {
			o.mark = "from the log"
		}
		reading.End()
		return printTimeline(c.Context, o, m, t)
	}))
}

// limit sets the revisions and the objects of a timeline.
func limit(c *cli.Context, m *merged, t *compare.Timeline, words []string) error {
	since, err := readMoment(c, "since", m.newest())
	if err != nil {
		return err
	}
	until, err := readMoment(c, "until", m.newest())
	if err != nil {
		return err
	}
	if t.Last = math.MaxInt64; until != nil {
		t.Last = until.last(&m.clock)
	}
	switch {
	case since != nil && since.time.IsZero():
		t.First = since.revision
	case since != nil:
		t.First = m.clock.First(since.time)
	}
	var all []get.Asked
	for _, word := range words {
		asked, err := readAsked(c, []string{word}, (*inspect.Reader).TypesEver, m.sides...)
		if err != nil {
			return err
		}
		all, t.All = append(all, asked...), true
	}
	if in := selectionOf(c); all != nil {
		t.Want = func(k keys.Key) bool { return asks(all, in, k) }
	} else if in.Namespace != "" || in.Cluster != "" {
		t.Want = in.Holds
	}
	return nil
}

// timelineDocument is the head of timeline -o json; input is the snapshot of the lowest revision.
type timelineDocument struct {
	documentHead
	Snapshots []keptInput `json:"snapshots"` // by revision
	// SameCluster is "unknown" if the files may be of different clusters; absent for one.
	SameCluster compare.Same `json:"sameCluster,omitempty"`
}

// timelineTail is the tail of timeline -o json.
type timelineTail struct {
	Count  int `json:"count"`
	Folded int `json:"folded"` // writes of noise
}

func printTimeline(ctx context.Context, o historyOptions, m *merged, t *compare.Timeline) error {
	if o.format == "text" {
		return printFlow(ctx, o, t)
	}
	list, count := render.NewList(o.out, o.format), 0
	if o.format == "json" {
		kept, err := m.inputs(ctx)
		if err != nil {
			return err
		}
		head := timelineDocument{document("Timeline", kept[0].inputInfo), kept, m.same}
		if err := list.Begin(head, "events"); err != nil {
			return err
		}
	}
	err := stream.Each(t.Events(ctx), func(e *compare.Event) error {
		count++
		return list.Add(e)
	})
	return errors.Join(err, list.End(timelineTail{count, t.Folded}), unread(t)) // printed lines remain
}

// unread returns the error of a timeline with unreadable values.
func unread(t *compare.Timeline) error {
	if t.Unread == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be read: labels and managers are unknown there", phrase.Count(t.Unread, "value"))
}

func printFlow(ctx context.Context, o historyOptions, t *compare.Timeline) error {
	flow := render.NewFlow(o.out, "TIME", "WITHIN", "REVISION", "WHAT", "OBJECT", "MANAGER")
	err := stream.Each(t.Events(ctx), func(e *compare.Event) error { return flow.Row(eventCells(e, o.mark)...) })
	if err = errors.Join(err, flow.Flush()); err == nil && t.Folded > 0 && !o.quiet {
		fmt.Fprintf(o.errs, "folded: %s of Leases, Events and API servers; --all shows them\n",
			phrase.Count(t.Folded, "write"))
	}
	return errors.Join(err, unread(t))
}

func eventCells(e *compare.Event, mark string) []string {
	revision, object := strconv.FormatInt(e.Revision, 10), ""
	if e.Sub > 0 {
		revision = fmt.Sprintf("%s.%d", revision, e.Sub)
	}
	if e.Revision == 0 {
		revision = fmt.Sprintf("%d-%d", e.From, e.To)
	}
	if e.Subject != nil {
		object = e.Subject.String()
	} else {
		object = "(of each key the last write alone is kept)"
	}
	manager := strings.Join(stream.Mapped(e.Managers, func(w compare.Writer) string { return w.Manager }), ", ")
	if e.FreePage {
		manager = strings.TrimSpace(manager + " (" + mark + ")")
	}
	if e.Note != "" {
		manager = strings.TrimSpace(manager + " (" + e.Note + ")")
	}
	if e.Conflict {
		manager = strings.TrimSpace(manager + " (snapshots disagree: their clusters went different ways)")
	}
	about, within := "", ""
	if at := e.Time; at != nil {
		about, within = at.About.Format(time.RFC3339), "?"
		if !at.NotBefore.IsZero() && !at.NotAfter.IsZero() {
			within = at.NotAfter.Sub(at.NotBefore).String()
		}
	}
	return []string{about, within, revision, string(e.What), object, manager}
}
