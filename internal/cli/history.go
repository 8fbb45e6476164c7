package cli

import (
	"errors"
	"fmt"
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
		Usage:     "show the revisions of an object, deletions too",
		ArgsUsage: "SNAPSHOT... KEY|TYPE/NAME|TYPE NAME",
		Description: `etcdshift history before.db deployment web -n shop
etcdshift history monday.db tuesday.db configmap/prices -o jsonl`,
		UsageText: `Shows the history of one key: created, updated, deleted, recreated; the changes of each revision,
field by field; the writers, from managedFields; and the approximate time, from Leases, Events and other objects
written nearby.

A snapshot keeps the writes since the last compaction, often a few minutes, and one older record of each key. Several
snapshots of one cluster, in any order, give one history, which names the revisions that none of them keeps. --at
shows the record that held at a time, as far as the files tell times.

Exit status: 0 shown, 1 not found, unreadable or damaged, 2 usage or a TYPE that no snapshot has, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "the object is in `NAMESPACE`; needed where several have one of that name"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "the object is in logical cluster `NAME` of kcp; needed where " +
				"several have one of that name"},
			&cli.StringFlag{Name: "at", Usage: "show only the record that held at `REVISION`, or at a time: " +
				timeForms},
			&cli.BoolFlag{Name: "all", Usage: "show changes that are noise too: managedFields, renewals, heartbeats"},
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
		h := &historian{c: c, files: files, options: readHistoryOptions(c)}
		if err := h.sort(); err != nil {
			return err
		}
		if err := h.find(word); err != nil {
			return err
		}
		if err := h.readTimes(); err != nil {
			return err
		}
		reading.End()
		return h.print()
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
	format, at          string
	all, secrets, quiet bool
}

func readHistoryOptions(c *cli.Context) historyOptions {
	return historyOptions{c.String("output"), c.String("at"), c.Bool("all"), c.Bool("show-secrets"), c.Bool("quiet")}
}

// historian prints the history of one key.
type historian struct {
	c       *cli.Context
	options historyOptions
	files   []*opened         // by revision
	sides   []*inspect.Reader // readers of files
	subject compare.Subject
	clock   compare.Clock
	same    compare.Same // whether the files are of one cluster; "" for one file
}

// sort sorts the files and finds out whether they are of one cluster.
func (h *historian) sort() error {
	if err := compare.Sort(h.c.Context, h.files); err != nil {
		return err
	}
	h.sides = stream.Mapped(h.files, func(o *opened) *inspect.Reader { return o.Reader })
	return h.compareClusters()
}

func (h *historian) readTimes() error {
	for _, s := range h.sides {
		if err := h.clock.Read(h.c.Context, s); err != nil {
			return err
		}
	}
	return nil
}

func (h *historian) compareClusters() error {
	for i := 1; i < len(h.sides); i++ {
		same, err := sameCluster(h.c, h.sides[i-1], h.sides[i])
		if err != nil {
			return err
		}
		if h.same == "" || same == compare.No || same == compare.Unknown && h.same == compare.Yes {
			h.same = same
		}
	}
	return nil
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

// find finds the key: the word itself if stored anywhere, else the key of the named object.
func (h *historian) find(word string) error {
	ctx := h.c.Context
	for _, s := range h.sides {
		sees, err := s.Sees(ctx, []byte(word))
		if err != nil {
			return err
		}
		for _, err := range s.Snapshot().History(ctx, []byte(word)) {
			if err != nil {
				return err
			}
			if sees {
				return h.take(word)
			}
			break
		}
	}
	found, elsewhere := map[string]compare.Subject{}, ""
	if !strings.HasPrefix(word, "/") {
		asked, err := readAsked(h.c, []string{word}, (*inspect.Reader).TypesEver, h.sides...)
		if err != nil {
			return err
		}
		in, types := selectionOf(h.c), stream.Mapped(asked, func(a get.Asked) *inspect.Type { return a.Type })
		if in.Names = asked[0].Names; in.Names == nil {
			err := usagef(commandPath(h.c), "%q is no key of the file, and neither TYPE/NAME nor TYPE NAME", word)
			return &failure{exitUsage, err,
				`"etcdshift timeline SNAPSHOT TYPE" shows the changes of all objects of a type`}
		}
		for _, kind := range types {
			if err := h.collect(found, kind, in); err != nil {
				return err
			}
		}
		if len(found) == 0 && in.Namespace != "" {
			elsewhere = get.Namesakes(h.c.Context, types, in.Names[0], in.Cluster, h.sides...)
		}
	}
	return h.choose(word, elsewhere, found)
}

// collect adds the objects of a type, live and deleted ones, by key.
func (h *historian) collect(found map[string]compare.Subject, kind *inspect.Type, in inspect.Selection) error {
	live := func(d *inspect.DeletedObject) *inspect.Object { return d.Object }
	for _, s := range h.sides {
		deleted := stream.Map(s.DeletedObjects(h.c.Context, kind, in), live)
		for _, objects := range []iter.Seq2[*inspect.Object, error]{s.Objects(h.c.Context, kind, in), deleted} {
			for o, err := range objects {
				if err != nil {
					return err
				}
				found[string(o.Key)] = compare.NewSubject(o.Key, o.Parsed)
			}
		}
	}
	return nil
}

func (h *historian) choose(word, elsewhere string, found map[string]compare.Subject) error {
	var names []string
	for key, subject := range found {
		h.subject = subject
		names = append(names, fmt.Sprintf("%v (%s)", subject, key))
	}
	switch {
	case len(names) == 0:
		err := fmt.Errorf("%q is not there%s, nor was it since the last compaction%s", word, belowNamed(h.c), elsewhere)
		return &failure{exitFailed, err, `"etcdshift keys" lists the keys of a snapshot`}
	case len(names) == 1:
		return nil
	}
	slices.Sort(names)
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return usagef(commandPath(h.c), "%q is the name of several: %q%s; say which with --namespace, --cluster, "+
		"or by its key", word, names, more)
}

// take selects a key and the object named by the key in any of the snapshots.
func (h *historian) take(key string) error {
	h.subject = compare.Subject{Key: key}
	for _, s := range h.sides {
		layouts, err := s.Layouts(h.c.Context)
		if err != nil {
			return err
		}
		if place, _, err := layouts.Parse([]byte(key)); err == nil {
			h.subject = compare.NewSubject([]byte(key), place)
			return nil
		}
	}
	return nil
}

func (h *historian) print() error {
	format := h.options.format
	list, count := render.NewList(h.c.App.Writer, format), 0
	p := historyPage{render.NewPage(h.c.App.Writer), len(h.files) > 1}
	end := func() error { return list.End(historyTail{count}) }
	var err error
	switch format {
	case "text":
		err, end = h.printHead(p), p.Flush
	case "json":
		err = h.begin(list)
	}
	if err != nil {
		return err
	}
	options := compare.Options{All: h.options.all, ShowSecrets: h.options.secrets, Clock: &h.clock}
	steps := compare.History(h.c.Context, h.sides, []byte(h.subject.Key), options)
	if h.options.at != "" {
		steps = h.held(steps)
	}
	err = stream.Each(steps, func(s *compare.Step) error {
		if format == "text" {
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
func (h *historian) held(steps iter.Seq2[*compare.Step, error]) iter.Seq2[*compare.Step, error] {
	return stream.Of(func(yield func(*compare.Step) error) error {
		at, err := h.moment("at")
		if err != nil {
			return err
		}
		revision := at.last(&h.clock)
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
				h.options.at, next.Revision, aboutText(&h.clock, next.Revision))
		}
		if !h.options.quiet {
			fmt.Fprintln(h.c.App.ErrWriter, h.until(next))
		}
		return yield(held)
	})
}

// until tells how long a step held.
func (h *historian) until(next *compare.Step) string {
	switch {
	case next == nil:
		return "no later record of it is in the files"
	case next.Missing != nil:
		return "(" + missingText(next) + ")"
	}
	return fmt.Sprintf("it held until revision %d: %s %s", next.Revision, next.What, aboutText(&h.clock, next.Revision))
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

func (h *historian) begin(list *render.List) error {
	kept, err := h.inputs()
	if err != nil {
		return err
	}
	head := document("History", kept[0].inputInfo)
	return list.Begin(historyDocument{head, kept, h.same, h.subject}, "revisions")
}

func (h *historian) inputs() (all []keptInput, err error) {
	for _, f := range h.files {
		in, err := f.input(h.c.Context)
		if err != nil {
			return nil, err
		}
		oldest, _, err := f.Snapshot().Kept(h.c.Context)
		if err != nil {
			return nil, err
		}
		all = append(all, keptInput{in, oldest})
	}
	return all, nil
}
