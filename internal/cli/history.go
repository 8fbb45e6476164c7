package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show the revisions of an object, including deletions",
		ArgsUsage: "SNAPSHOT... KEY|TYPE/NAME|TYPE NAME",
		Description: `etcdshift history before.db deployment web -n shop
etcdshift history monday.db tuesday.db configmap/prices -o jsonl`,
		UsageText: `Shows the history of one key: created, updated, deleted, recreated; the changes of each revision,
field by field; the writers, from managedFields; and the approximate time, from Leases, Events and other objects
written shortly before and after.

A snapshot keeps the writes since the last compaction, often a few minutes, and one older record of each key. Several
snapshots of one cluster, in any order, are merged into one history, which lists the missing revisions. --at shows
the record that was current at a revision, or at a time if the snapshots allow an estimate.

--free-pages also searches the free pages of the files, byte by byte, for records that a compaction removed. They
are marked. Each one is a true record, but records between them may be missing.

Exit status: 0 shown, 1 not found, unreadable or damaged, 2 usage, or no snapshot has the TYPE, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "look in `NAMESPACE`; required if several namespaces have an object of this name"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster",
				Usage: "look in logical cluster `NAME` of kcp; required if several have an " +
					"object of this name"},
			&cli.StringFlag{Name: "at", Usage: "show only the record that was current at `REVISION` or at a time: " +
				timeForms},
			freePagesFlag("records"),
			&cli.BoolFlag{Name: "all", Usage: "also show noise: managedFields, renewals, heartbeats"},
			showSecretsFlag(), listFormats()),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, "SNAPSHOT...", "KEY|TYPE/NAME")
			if err != nil {
				return err
			}
			return runHistory(c, args)
		},
	}
}

func runHistory(c *cli.Context, args []string) error {
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	paths, word := historyOf(args)
	if len(paths)+1 < len(args) {
		sayType(c, args[len(paths)])
	}
	return snapshotFirst(c, args, readSnapshots(c, paths, func(files []*opened) error {
		reading.Of(part(1, 4, files...))
		m, err := merge(c, files)
		if err != nil {
			return err
		}
		subject, err := findSubject(c, word, m.sides)
		if err != nil {
			return err
		}
		if err := m.readTimes(c.Context); err != nil {
			return err
		}
		reading.End()
		o, err := readHistoryOptions(c, m.newest())
		if err != nil {
			return err
		}
		return printHistory(c.Context, o, m, subject)
	}))
}

// historyOf splits the arguments into snapshots and the key or object. Words without a slash are
// TYPE NAME if the first one is not a file.
func historyOf(args []string) (paths []string, word string) {
	last := len(args) - 1
	paths, word = args[:last], args[last]
	if last >= 2 && !strings.Contains(word, "/") && args[last-1] != "-" && !namesSnapshot(args[last-1]) {
		return args[:last-1], args[last-1] + "/" + word
	}
	return paths, word
}

// historyOptions holds the flags of history and timeline.
type historyOptions struct {
	out, errs           io.Writer
	format              string
	at                  *moment // nil for all
	atText              string  // of at, as it was given
	mark                string  // of records that the states do not have
	all, secrets, quiet bool
}

func readHistoryOptions(c *cli.Context, newest *inspect.Reader) (o historyOptions, err error) {
	if c.IsSet("at") && c.Bool("free-pages") {
		return o, usagef(commandPath(c), "--at shows a state, and --free-pages finds single records: give "+
			"one of them")
	}
	o = historyOptions{out: c.App.Writer, errs: c.App.ErrWriter, format: c.String("output"), atText: c.String("at"),
		all: c.Bool("all"), secrets: c.Bool("show-secrets"), quiet: c.Bool("quiet")}
	o.at, err = readMoment(c, "at", newest)
	return o, err
}

// merged are snapshots that are read together.
type merged struct {
	files []*opened         // by revision
	sides []*inspect.Reader // readers of files
	same  compare.Same      // whether the files are of one cluster; "" for one file
	clock compare.Clock
}

// merge puts files in order, and finds out whether they are of one cluster.
func merge(c *cli.Context, files []*opened) (*merged, error) {
	if err := compare.Sort(c.Context, files); err != nil {
		return nil, err
	}
	m := &merged{files: files, sides: stream.Mapped(files, func(o *opened) *inspect.Reader { return o.Reader })}
	for i := 1; i < len(m.sides); i++ {
		same, err := sameCluster(c, m.sides[i-1], m.sides[i])
		if err != nil {
			return nil, err
		}
		if m.same == "" || same == compare.No || same == compare.Unknown && m.same == compare.Yes {
			m.same = same
		}
	}
	return m, nil
}

func (m *merged) newest() *inspect.Reader { return m.sides[len(m.sides)-1] }

func (m *merged) readTimes(ctx context.Context) error {
	for _, s := range m.sides {
		if err := m.clock.Read(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (m *merged) inputs(ctx context.Context) (all []keptInput, err error) {
	for _, f := range m.files {
		in, err := f.input(ctx)
		if err != nil {
			return nil, err
		}
		oldest, _, err := f.Snapshot().Kept(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, keptInput{in, oldest})
	}
	return all, nil
}

// sameCluster warns if two snapshots are, or may be, of different clusters.
func sameCluster(c *cli.Context, a, b *inspect.Reader) (compare.Same, error) {
	same, why, err := compare.SameCluster(c.Context, a, b)
	switch paths := a.Snapshot().Path() + " and " + b.Snapshot().Path(); {
	case why == "":
	case same == compare.No:
		warn(c, paths+" are of two clusters: "+why)
	default:
		warn(c, "nothing tells whether "+paths+" are of one cluster: "+why)
	}
	return same, err
}

// findSubject finds a key: the word itself if stored anywhere, else the key of the named object.
func findSubject(c *cli.Context, word string, sides []*inspect.Reader) (compare.Subject, error) {
	subject, stored, err := compare.Stored(c.Context, sides, word)
	if stored || err != nil {
		return subject, err
	}
	found, elsewhere := map[string]compare.Subject{}, ""
	if !strings.HasPrefix(word, "/") {
		asked, err := readAsked(c, []string{word}, (*inspect.Reader).TypesEver, sides...)
		if err != nil {
			return subject, err
		}
		in, types := selectionOf(c), stream.Mapped(asked, func(a get.Asked) *inspect.Type { return a.Type })
		if in.Names = asked[0].Names; in.Names == nil {
			err := usagef(commandPath(c), "%q is no key of the file, and neither TYPE/NAME nor TYPE NAME", word)
			return subject, &failure{exitUsage, err,
				`"etcdshift timeline SNAPSHOT TYPE" shows the changes of all objects of a type`}
		}
		if found, err = compare.Named(c.Context, sides, types, in); err != nil {
			return subject, err
		}
		if len(found) == 0 && in.Namespace != "" {
			elsewhere = get.Namesakes(c.Context, types, in.Names[0], in.Cluster, sides...)
		}
	}
	var names []string
	for key, one := range found {
		subject = one
		names = append(names, fmt.Sprintf("%v (%s)", subject, key))
	}
	switch {
	case len(names) == 0:
		err := fmt.Errorf("%q is not there%s, nor was it since the last compaction%s", word, belowNamed(c), elsewhere)
		hint := `"etcdshift keys" lists the keys of a snapshot`
		if !c.IsSet("at") && !c.Bool("free-pages") {
			hint += "; --free-pages also finds objects that were deleted earlier"
		}
		return subject, &failure{exitFailed, err, hint}
	case len(names) == 1:
		return subject, nil
	}
	slices.Sort(names)
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return subject, usagef(commandPath(c), "%q is the name of several: %q%s; say which with --namespace, --cluster, "+
		"or by its key", word, names, more)
}

func printHistory(ctx context.Context, o historyOptions, m *merged, subject compare.Subject) error {
	list, count := render.NewList(o.out, o.format), 0
	p := historyPage{render.NewPage(o.out), len(m.files) > 1}
	end := func() error { return list.End(historyTail{count}) }
	var err error
	switch o.format {
	case "text":
		err, end = p.head(ctx, m, subject), p.Flush
	case "json":
		err = beginHistory(ctx, list, m, subject)
	}
	if err != nil {
		return err
	}
	options := compare.Options{All: o.all, ShowSecrets: o.secrets, Clock: &m.clock}
	steps := compare.History(ctx, m.sides, []byte(subject.Key), options)
	if o.at != nil {
		steps = held(o, &m.clock, steps)
	}
	err = stream.Each(steps, func(s *compare.Step) error {
		if o.format == "text" {
			p.step(s)
			return nil
		}
		count++
		return list.Add(s)
	})
	return errors.Join(err, end()) // printed lines remain
}

// held yields the last step up to --at, and prints on stderr until when this step held. A moment
// before the first step is an error.
func held(
	o historyOptions, clock *compare.Clock, steps iter.Seq2[*compare.Step, error],
) iter.Seq2[*compare.Step, error] {
	return stream.Of(func(yield func(*compare.Step) error) error {
		revision := o.at.last(clock)
		var held, next *compare.Step
		for s, err := range steps {
			if err != nil {
				return err
			}
			if s.Revision == 0 || s.Revision > revision {
				next = s
				break
			}
			held = s
		}
		switch {
		case held == nil && next == nil:
			return nil
		case held == nil:
			return fmt.Errorf("nothing is known of it at %s: its first record is of revision %d, %s",
				o.atText, next.Revision, aboutText(clock, next.Revision))
		}
		if !o.quiet {
			fmt.Fprintln(o.errs, heldUntil(clock, next))
		}
		return yield(held)
	})
}

// heldUntil tells how long a step held.
func heldUntil(clock *compare.Clock, next *compare.Step) string {
	switch {
	case next == nil:
		return "no later record of it is in the files"
	case next.Missing != nil:
		return "(" + missingText(next) + ")"
	}
	return fmt.Sprintf("it held until revision %d: %s %s", next.Revision, next.What, aboutText(clock, next.Revision))
}

// historyDocument is the head of history -o json; input is the snapshot of the lowest revision.
type historyDocument struct {
	documentHead
	Snapshots []keptInput `json:"snapshots"` // by revision
	// SameCluster is "no" if two are of different clusters, "unknown" if unsure; absent for one.
	SameCluster compare.Same `json:"sameCluster,omitempty"`
	compare.Subject
}

// keptInput is a snapshot and its oldest complete revision.
type keptInput struct {
	inputInfo
	Oldest int64 `json:"oldest"`
}

// historyTail is the tail of history -o json.
type historyTail struct {
	Count int `json:"count"`
}

func beginHistory(ctx context.Context, list *render.List, m *merged, subject compare.Subject) error {
	kept, err := m.inputs(ctx)
	if err != nil {
		return err
	}
	head := document("History", kept[0].inputInfo)
	return list.Begin(historyDocument{head, kept, m.same, subject}, "revisions")
}
