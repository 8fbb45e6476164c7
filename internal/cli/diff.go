package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show the differences between two snapshots",
		ArgsUsage: "OLD NEW [TYPE[/NAME]...]",
		Description: `etcdshift diff monday.db tuesday.db
etcdshift diff monday.db tuesday.db -n shop deployments configmap/prices
etcdshift diff -o json before.db after.db`,
		UsageText: `Compares the values of each key and shows, field by field, how each object differs: added,
removed, changed, or recreated (deleted and created again, with another uid). Items of lists are matched by their
keys or names.

Noise is folded away and counted: Events, managedFields, renewals of Leases, heartbeats of Nodes, the records of API
servers about themselves, leases of etcd. --all shows it. Secrets are compared, and shown as redacted.

Encrypted values are compared after decryption with --encryption-config. Without it their bytes are compared, and
these differ after each write of an object.

Exit status: 0 no difference except noise, 1 differences, 2 usage, 5 could not check, or TYPE/NAME is in neither, 130
interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "compare only objects in `NAMESPACE`"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "compare only objects in logical cluster `NAME` of kcp"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"},
				Usage: "compare only objects that match `LABELS` in OLD or NEW, such as app=web,tier!=db"},
			&cli.BoolFlag{Name: "all", Usage: "also show noise"},
			&cli.BoolFlag{Name: "summary", Usage: "print only the number of different objects of each resource"},
			&cli.StringFlag{Name: "encryption-config-new",
				Usage: "decrypt NEW with the EncryptionConfiguration in `FILE` (default: the one of OLD)"},
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
	d := &differences{
		Page: render.NewPage(c.App.Writer), list: render.NewList(c.App.Writer, c.String("output")),
		format: c.String("output"),
		silent: options.CountOnly, all: options.All,
	}
	reading := progress(c).Phase("comparing " + args[0] + " with " + args[1])
	defer reading.End()
	err = readSnapshots(c, args[:2], func(files []*opened) error {
		reading.Of(part(0, 0, files...))
		if options.Want, err = wanted(c, args[2:], files); err != nil {
			return err
		}
		same, err := sameCluster(c, files[0].Reader, files[1].Reader)
		if err != nil {
			return err
		}
		if err := d.begin(c.Context, files, same); err != nil {
			return err
		}
		reading.End()
		return d.print(c.Context, files, options)
	})
	if found := d.found(); err == nil && found > 0 {
		err = &failure{status: exitFound, err: fmt.Errorf("%s between %s and %s", phrase.Count(found, "difference"),
			args[0], args[1])}
	}
	return err
}

// wanted returns a selection of objects by TYPE/NAME, --namespace and --cluster; nil for all keys.
// A name missing in both snapshots is an error: it may be misspelt.
func wanted(c *cli.Context, words []string, files []*opened) (func(keys.Key) bool, error) {
	in := selectionOf(c)
	if len(words) == 0 && in.Namespace == "" && in.Cluster == "" {
		return nil, nil
	}
	where := ""
	for _, is := range [][2]string{{"namespace", in.Namespace}, {"cluster", in.Cluster}} {
		if is[1] != "" {
			where += fmt.Sprintf(", in %s %q", is[0], is[1])
		}
	}
	var all []get.Asked
	var errs []error
	for _, word := range words {
		asked, err := readAsked(c, []string{word}, (*inspect.Reader).Types, files[0].Reader, files[1].Reader)
		if f := (*failure)(nil); strings.Contains(word, "/") && errors.Is(err, inspect.ErrUnknownType) &&
			errors.As(err, &f) {
			errs = append(errs, &failure{exitCannotCheck, f.err, f.hint})
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, asked...)
		named, types := in, stream.Mapped(asked, func(a get.Asked) *inspect.Type { return a.Type })
		named.Names = asked[0].Names
		there := named.Names == nil
		for _, f := range files {
			for _, kind := range types {
				for _, err := range f.Objects(c.Context, kind, named) {
					if err != nil {
						return nil, err
					}
					there = true
					break
				}
			}
		}
		if !there {
			elsewhere := get.Namesakes(c.Context, types, named.Names[0], in.Cluster, files[0].Reader, files[1].Reader)
			errs = append(errs, fmt.Errorf("%q not found in either snapshot%s%s", word, where, elsewhere))
		}
	}
	return func(k keys.Key) bool {
		return all == nil && in.Holds(k) || asks(all, in, k)
	}, errors.Join(errs...)
}

// differences prints differing objects one by one, then leases.
type differences struct {
	*render.Page
	list        *render.List
	format      string
	summary     compare.Summary
	leases      []compare.Lease
	silent, all bool // print only the summary; treat nothing as noise
}

func (d *differences) begin(ctx context.Context, files []*opened, same compare.Same) (err error) {
	if d.format != "json" {
		return nil
	}
	head := diffDocument{SameCluster: same}
	if head.documentHead, err = files[0].document(ctx, "Diff"); err != nil {
		return err
	}
	if head.NewInput, err = files[1].input(ctx); err != nil {
		return err
	}
	return d.list.Begin(head, "objects")
}

func (d *differences) print(ctx context.Context, files []*opened, o compare.Options) (err error) {
	err = stream.Each(compare.Snapshots(ctx, files[0].Reader, files[1].Reader, o), d.add)
	if err == nil && o.Want == nil && o.Labels == nil {
		d.leases, err = compare.Leases(ctx, files[0].Snapshot(), files[1].Snapshot())
	}
	if err != nil {
		return err
	}
	tail := d.tail()
	if d.format == "text" {
		return d.printEnd(tail)
	}
	if d.format == "jsonl" && !d.silent {
		for _, l := range tail.Leases {
			if err := d.list.Add(l); err != nil {
				return err
			}
		}
	}
	return d.list.End(tail)
}

func (d *differences) add(object *compare.Object) error {
	d.summary.Add(object)
	switch {
	case object.Noise || d.silent:
	case d.format == "text":
		d.object(object)
	default:
		return d.list.Add(object)
	}
	return nil
}

// found returns the number of differing objects and leases, without noise.
func (d *differences) found() int {
	n := d.summary.Total().Found()
	if d.all {
		n += len(d.leases)
	}
	return n
}

// tail returns the fields after the objects in a document.
func (d *differences) tail() diffTail {
	t := diffTail{Summary: d.summary.Rows(), Folded: d.summary.Total().Folded, Leases: []compare.Lease{}}
	if d.all {
		t.Leases = append(t.Leases, d.leases...)
	} else {
		t.FoldedLeases = len(d.leases)
	}
	return t
}

// diffDocument is the head of diff -o json, before the objects.
type diffDocument struct {
	documentHead
	NewInput    inputInfo    `json:"newInput"`    // input is OLD
	SameCluster compare.Same `json:"sameCluster"` // "yes", "no" or "unknown"
}

// diffTail is the tail of diff -o json.
type diffTail struct {
	Summary []compare.Count `json:"summary"`
	Folded  int             `json:"folded"` // objects that differ only in noise
	Leases  []compare.Lease `json:"leases"` // with --all
	// FoldedLeases counts differing leases, without --all.
	FoldedLeases int `json:"foldedLeases"`
}

func (d *differences) head(op compare.Op, name string) {
	colour := map[compare.Op]render.Colour{compare.Added: render.Green, compare.Removed: render.Red}[op]
	d.Line(cmp.Or(colour, render.Bold), string(op)+" "+name)
}

func (d *differences) object(o *compare.Object) {
	d.head(o.Op, o.Subject.String())
	for _, note := range o.Notes {
		d.Line(render.Cyan, "  ("+note+")")
	}
	d.Changes("  ", o.Changes)
	if o.Folded > 0 {
		d.Line(render.Cyan, fmt.Sprintf("  (and %s folded away)", phrase.Count(o.Folded, "change")))
	}
}

func (d *differences) lease(l compare.Lease) {
	ttl := fmt.Sprintf("%d s", cmp.Or(l.NewTTL, l.OldTTL))
	if l.Op != compare.Added && l.Op != compare.Removed {
		ttl = fmt.Sprintf("%d s, was %d s", l.NewTTL, l.OldTTL)
	}
	d.head(l.Op, fmt.Sprintf("etcd lease %s (%s)", l.ID, ttl))
}

func (d *differences) printEnd(tail diffTail) error {
	total := d.summary.Total()
	if !d.silent {
		for _, l := range tail.Leases {
			d.lease(l)
		}
	}
	switch {
	case total.Found() > 0:
		if !d.silent {
			d.Line(render.Plain, "")
		}
		d.Table([]any{"RESOURCE", "ADDED", "REMOVED", "CHANGED", "RECREATED", "FOLDED"},
			stream.Mapped(d.summary.Rows(), func(c compare.Count) []any {
				return []any{cmp.Or(c.Resource, "(no resource)"), c.Added, c.Removed, c.Changed, c.Recreated, c.Folded}
			})...)
	case d.found() == 0:
		d.Printf("no difference\n")
	}
	if total.Folded > 0 {
		d.Printf("%s with nothing but noise; --all shows it\n", phrase.Count(total.Folded, "object"))
	}
	if n := tail.FoldedLeases; n > 0 {
		d.Printf("%s of etcd granted, gone or changed; --all shows them\n", phrase.Count(n, "lease"))
	}
	if n := len(tail.Leases); n > 0 {
		d.Printf("%s of etcd granted, gone or changed\n", phrase.Count(n, "lease"))
	}
	return d.Flush()
}
