package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/keys"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "what changed between two snapshots",
		ArgsUsage: "OLD NEW [TYPE[/NAME]...]",
		Description: `etcdshift diff monday.db tuesday.db
etcdshift diff monday.db tuesday.db -n shop deployments configmap/prices
etcdshift diff -o json before.db after.db`,
		UsageText: `Compares the values of each key and shows, field by field, how each object differs: added, removed, changed, or recreated (deleted
and created again: another uid). Items of lists are matched by their keys or names.

Noise is folded away and counted: Events, managedFields, renewals of Leases, heartbeats of Nodes, the records of API servers
about themselves, leases of etcd. --all shows it. Secrets are compared, and shown as redacted.

Encrypted values are compared decrypted with --encryption-config, else by their bytes, which differ after each write of an object.

Exit status: 0 no difference but noise, 1 differences, 2 usage, 5 could not check or TYPE/NAME is in neither, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "compare what is in `NAMESPACE` alone"},
			&cli.StringFlag{Name: "cluster", Usage: "compare what is in logical cluster `NAME` of kcp alone"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "compare what has the `LABELS` in one of the snapshots, such as app=web,tier!=db"},
			&cli.BoolFlag{Name: "all", Usage: "show noise too"},
			&cli.BoolFlag{Name: "summary", Usage: "print how many objects of each resource differ, and no more"},
			&cli.StringFlag{Name: "encryption-config-new", Usage: "decrypt NEW with the EncryptionConfiguration in `FILE`, where it is not that of OLD"},
			showSecretsFlag(), listFormats()),
		Action: checking(runDiff),
	}
}

func runDiff(c *cli.Context, args []string) (err error) {
	options := compare.Options{All: c.Bool("all"), ShowSecrets: c.Bool("show-secrets"), CountOnly: c.Bool("summary")}
	if c.IsSet("selector") {
		if options.Labels, err = labels.Parse(c.String("selector")); err != nil {
			return usagef(commandPath(c), "--selector: %v", err)
		}
	}
	found := 0
	reading := progress(c).Phase("comparing " + args[0] + " with " + args[1])
	defer reading.End()
	err = readSnapshots(c, args[:2], func(files []*opened) error {
		if options.Want, err = wanted(c, args[2:], files); err != nil {
			return err
		}
		out, err := newDifferences(c, files)
		if err != nil {
			return err
		}
		reading.End()
		if err := out.print(c.Context, files, options); err != nil {
			return err
		}
		found = out.found()
		return out.end()
	})
	if err == nil && found > 0 {
		err = &failure{status: exitFound, err: fmt.Errorf("%s between %s and %s", render.Plural(found, "difference"), args[0], args[1])}
	}
	return err
}

// wanted returns a choice of objects by TYPE/NAME, --namespace and --cluster; nil for all keys. A
// name that is in neither snapshot is an error: it may be misspelt.
func wanted(c *cli.Context, words []string, files []*opened) (func(keys.Key) bool, error) {
	in := scopeOf(c)
	if len(words) == 0 && in == (scope{}) {
		return nil, nil
	}
	all, err := parseNames(c, words, (*inspect.Reader).Types, files[0].Reader, files[1].Reader)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range all {
		there := a.names == nil
		for _, f := range files {
			for _, err := range a.keysOf(c.Context, f.Reader, in, false) {
				if err != nil {
					return nil, err
				}
				there = true
				break
			}
		}
		if !there {
			errs = append(errs, fmt.Errorf("%q not found in either snapshot%v", a.word, in))
		}
	}
	return func(k keys.Key) bool {
		return in.has(k) && (all == nil || slices.ContainsFunc(all, func(a asked) bool { return a.wants(k) }))
	}, errors.Join(errs...)
}

// differences prints objects that differ, one after the other, and then leases.
type differences struct {
	summary     compare.Summary
	leases      []compare.Lease
	silent, all bool // but for the summary; nothing is noise
	add         func(*compare.Object) error
	end         func() error
}

// print prints the differences of two files.
func (d *differences) print(ctx context.Context, files []*opened, o compare.Options) (err error) {
	for object, err := range compare.Snapshots(ctx, files[0].Reader, files[1].Reader, o) {
		if err == nil {
			err = d.add(object)
		}
		if err != nil {
			return err
		}
	}
	if o.Want == nil && o.Labels == nil {
		d.leases, err = compare.Leases(ctx, files[0].Snapshot(), files[1].Snapshot())
	}
	return err
}

// found is how many objects and leases differ, noise not counted.
func (d *differences) found() int {
	n := d.summary.Total().Found()
	if d.all {
		n += len(d.leases)
	}
	return n
}

// tail returns the fields behind the objects in a document.
func (d *differences) tail() diffTail {
	t := diffTail{Summary: d.summary.Rows(), Folded: d.summary.Total().Folded, Leases: []compare.Lease{}}
	if d.all {
		t.Leases = append(t.Leases, d.leases...)
	} else {
		t.FoldedLeases = len(d.leases)
	}
	return t
}

func newDifferences(c *cli.Context, files []*opened) (*differences, error) {
	same, err := sameCluster(c, files[0].Reader, files[1].Reader)
	if err != nil {
		return nil, err
	}
	format := c.String("output")
	d := &differences{silent: c.Bool("summary"), all: c.Bool("all")}
	var show func(*compare.Object) error
	if format == "text" {
		p := diffPage{render.NewPage(c.App.Writer)}
		show = func(o *compare.Object) error { p.object(o); return nil }
		d.end = func() error { return d.printEnd(p) }
	} else {
		list := render.NewList(c.App.Writer, format)
		show = func(o *compare.Object) error { return list.Add(o) }
		d.end = func() error { return d.endList(list, format) }
		if format == "json" {
			head, err := diffHead(c, same, files)
			if err != nil {
				return nil, err
			}
			if err := list.Begin(head, "objects"); err != nil {
				return nil, err
			}
		}
	}
	d.add = func(o *compare.Object) error {
		d.summary.Add(o)
		if o.Noise || d.silent {
			return nil
		}
		return show(o)
	}
	return d, nil
}

// diffDocument is the head of diff -o json, before its objects.
type diffDocument struct {
	documentHead
	NewInput    inputInfo    `json:"newInput"`    // input is OLD
	SameCluster compare.Same `json:"sameCluster"` // "yes", "no" or "unknown"
}

// diffTail is the tail of diff -o json.
type diffTail struct {
	Summary []compare.Count `json:"summary"`
	Folded  int             `json:"folded"` // objects of which there is nothing but noise
	Leases  []compare.Lease `json:"leases"` // with --all
	// FoldedLeases counts those that differ, without --all.
	FoldedLeases int `json:"foldedLeases"`
}

// endList ends the list of objects; in JSON lines the leases follow.
func (d *differences) endList(list *render.List, format string) error {
	if format == "jsonl" && !d.silent {
		for _, l := range d.tail().Leases {
			if err := list.Add(l); err != nil {
				return err
			}
		}
	}
	return list.End(d.tail())
}

func diffHead(c *cli.Context, same compare.Same, files []*opened) (doc diffDocument, err error) {
	head, err := files[0].document(c.Context, "Diff")
	if err != nil {
		return doc, err
	}
	newInput, err := files[1].input(c.Context)
	return diffDocument{head, newInput, same}, err
}

// diffPage prints differences for people.
type diffPage struct{ *render.Page }

// head prints the line above a difference.
func (p diffPage) head(op compare.Op, name string) {
	colour := map[compare.Op]render.Colour{compare.Added: render.Green, compare.Removed: render.Red}[op]
	p.Line(cmp.Or(colour, render.Bold), string(op)+" "+name)
}

// object prints one object that differs.
func (p diffPage) object(o *compare.Object) {
	p.head(o.Op, o.Subject.String())
	for _, note := range o.Notes {
		p.Line(render.Cyan, "  ("+note+")")
	}
	p.Changes("  ", o.Changes)
	if o.Folded > 0 {
		p.Line(render.Cyan, fmt.Sprintf("  (and %s folded away)", render.Plural(o.Folded, "change")))
	}
}

// lease prints one lease that differs.
func (p diffPage) lease(l compare.Lease) {
	ttl := fmt.Sprintf("%d s", cmp.Or(l.NewTTL, l.OldTTL))
	if l.Op != compare.Added && l.Op != compare.Removed {
		ttl = fmt.Sprintf("%d s, was %d s", l.NewTTL, l.OldTTL)
	}
	p.head(l.Op, fmt.Sprintf("etcd lease %s (%s)", l.ID, ttl))
}

// printEnd prints the leases that differ, and how many objects of each resource do.
func (d *differences) printEnd(p diffPage) error {
	tail, total := d.tail(), d.summary.Total()
	if !d.silent {
		for _, l := range tail.Leases {
			p.lease(l)
		}
	}
	switch {
	case total.Found() > 0:
		if !d.silent {
			p.Line(render.Plain, "")
		}
		p.Table([]any{"RESOURCE", "ADDED", "REMOVED", "CHANGED", "RECREATED", "FOLDED"}, mapped(d.summary.Rows(), func(c compare.Count) []any {
			return []any{cmp.Or(c.Resource, "(no resource)"), c.Added, c.Removed, c.Changed, c.Recreated, c.Folded}
		})...)
	case d.found() == 0:
		p.Printf("no difference\n")
	}
	if total.Folded > 0 {
		p.Printf("%s with nothing but noise; --all shows it\n", render.Plural(total.Folded, "object"))
	}
	if n := tail.FoldedLeases; n > 0 {
		p.Printf("%s of etcd granted, gone or changed; --all shows them\n", render.Plural(n, "lease"))
	}
	if n := len(tail.Leases); n > 0 {
		p.Printf("%s of etcd granted, gone or changed\n", render.Plural(n, "lease"))
	}
	return p.Flush()
}
