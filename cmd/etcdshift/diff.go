package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/differ"
	"github.com/etcdshift/etcdshift/internal/render"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "what changed between two snapshots",
		ArgsUsage: "OLD NEW [TYPE[/NAME]...]",
		Description: `etcdshift diff monday.db tuesday.db
etcdshift diff monday.db tuesday.db -n shop deployments configmap/prices
etcdshift diff -o json before.db after.db`,
		UsageText: `Compares what is stored under each key and shows, field by field, what became of each object: added, removed, changed, or
recreated (deleted and created again: another uid). Items of lists are matched by what names them.

Noise is folded away and counted: Events, managedFields, renewals of Leases, heartbeats of Nodes, the records of API servers
about themselves, leases of etcd. --all shows it. Secrets are compared, and shown as redacted.

Values that are encrypted at rest are compared decrypted with --encryption-config, else by their bytes, which differ each time
an object is written.

Exit status: 0 no difference but noise, 1 differences, 2 usage, 5 could not judge or TYPE/NAME is in neither, 130 interrupted.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "compare what is in `NAMESPACE` alone"},
			&cli.StringFlag{Name: "cluster", Usage: "compare what is in logical cluster `NAME` of kcp alone"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "compare what has the `LABELS` in one of the snapshots, such as app=web,tier!=db"},
			&cli.BoolFlag{Name: "all", Usage: "show noise too"},
			&cli.BoolFlag{Name: "summary", Usage: "print how many objects of each resource differ, and no more"},
			prefixFlag(), encryptionFlag("decrypt with"),
			&cli.StringFlag{Name: "encryption-config-new", Usage: "decrypt NEW with the EncryptionConfiguration in `FILE`, where it is not that of OLD"},
			showSecretsFlag(), maxExpandFlag(), streamFlag(), quietFlag(),
		},
		Action: runDiff,
	}
}

// streamFlag is -o of the commands that print a record after the other.
func streamFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "print `FORMAT`: text, json (one document) or jsonl (one line a record)"}
}

func runDiff(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef(commandPath(c), "takes OLD NEW and perhaps types; got %d: %q", len(args), args)
	}
	format, err := oneOf(c, "output", "text", "json", "jsonl")
	if err != nil {
		return err
	}
	options := compare.Options{All: c.Bool("all"), ShowSecrets: c.Bool("show-secrets"), CountOnly: c.Bool("summary")}
	if c.IsSet("selector") {
		if options.Labels, err = labels.Parse(c.String("selector")); err != nil {
			return usagef(commandPath(c), "--selector: %v", err)
		}
	}
	found, err := diff(c, args, options, format)
	if f := (*failure)(nil); errors.As(err, &f) && f.status == exitUsage {
		return err
	}
	if err != nil {
		return &failure{status: exitCannotJudge, err: err}
	}
	if found > 0 {
		return &failure{status: exitFound, err: fmt.Errorf("%s between %s and %s", render.Plural(found, "difference"), args[0], args[1])}
	}
	return nil
}

// diff prints what differs and returns how many objects do.
func diff(c *cli.Context, args []string, options compare.Options, format string) (found int, err error) {
	reading := progress(c).Phase("comparing " + args[0] + " with " + args[1])
	defer reading.End()
	old, err := openSnapshot(c, args[0])
	if err != nil {
		return 0, err
	}
	defer old.Close()
	flag := "encryption-config"
	if c.IsSet("encryption-config-new") {
		flag = "encryption-config-new"
	}
	new, err := openEncrypted(c, args[1], flag)
	if err != nil {
		return 0, err
	}
	defer new.Close()
	compareFiles := func() error {
		if options.Want, err = wantedOf(c, args[2:], old.Reader, new.Reader); err != nil {
			return err
		}
		if err := mustBeThere(c, args[2:], old, new); err != nil {
			return err
		}
		sides := [2]compare.Side{{Snapshot: old.snapshot, Reader: old.Reader}, {Snapshot: new.snapshot, Reader: new.Reader}}
		same, err := sameCluster(c, sides[0], sides[1])
		if err != nil {
			return err
		}
		out, err := newDifferences(c, format, same, old, new)
		if err != nil {
			return err
		}
		reading.End()
		for o, err := range compare.Snapshots(c.Context, sides[0], sides[1], options) {
			if err != nil {
				return err
			}
			if err := out.add(o); err != nil {
				return err
			}
		}
		if options.Want == nil && options.Labels == nil {
			if out.leases, err = compare.Leases(c.Context, old.snapshot, new.snapshot); err != nil {
				return err
			}
		}
		found = out.found()
		return out.end()
	}
	err = old.read(c.Context, func() error {
		return new.read(c.Context, func() error { return lookBelow(c, compareFiles, old, new) })
	})
	return found, err
}

// mustBeThere is an error where TYPE/NAME names what neither snapshot has: no difference would be no answer to a name misspelt.
func mustBeThere(c *cli.Context, words []string, sides ...*opened) error {
	var errs []error
	for _, word := range words {
		a, err := resolve(c, word, sides[0].Reader, sides[1].Reader)
		if err != nil {
			return err
		}
		there := a.name == ""
		for _, side := range sides {
			if !there {
				if there, err = side.has(c, a); err != nil {
					return err
				}
			}
		}
		if !there {
			where := ""
			for _, flag := range []string{"namespace", "cluster"} {
				if value := c.String(flag); value != "" {
					where += fmt.Sprintf(", in %s %q", flag, value)
				}
			}
			errs = append(errs, fmt.Errorf("%q not found in either snapshot%s", word, where))
		}
	}
	return errors.Join(errs...)
}

// has tells whether the snapshot has an object that is asked for, in the namespace and cluster of the flags.
func (o *opened) has(c *cli.Context, a asked) (bool, error) {
	layouts, err := o.Reader.Layouts(c.Context)
	if err != nil {
		return false, err
	}
	namespace, cluster := c.String("namespace"), c.String("cluster")
	for _, resource := range a.resources {
		for _, dir := range layouts.Dirs(resource) {
			for rec, err := range o.snapshot.Live(c.Context, dir) {
				if err != nil {
					return false, err
				}
				k, _, err := layouts.Parse(rec.Key)
				if err == nil && a.wants(k) && (namespace == "" || k.Namespace == namespace) && (cluster == "" || k.Cluster == cluster) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// differences prints objects that differ, one after the other, and then leases.
type differences struct {
	summary     compare.Summary
	leases      []compare.Lease
	silent, all bool // but for the summary; nothing is noise
	add         func(*compare.Object) error
	end         func() error
}

// found is how many objects and leases differ, noise not counted.
func (d *differences) found() int {
	n := d.summary.Total().Found()
	if d.all {
		n += len(d.leases)
	}
	return n
}

// tail is what follows the objects in a document.
func (d *differences) tail() diffTail {
	t := diffTail{Summary: d.summary.Rows(), Folded: d.summary.Total().Folded, Leases: []compare.Lease{}}
	if d.all {
		t.Leases = append(t.Leases, d.leases...)
	} else {
		t.FoldedLeases = len(d.leases)
	}
	return t
}

func newDifferences(c *cli.Context, format string, same compare.Same, old, new *opened) (*differences, error) {
	d := &differences{silent: c.Bool("summary"), all: c.Bool("all")}
	var show func(*compare.Object) error
	if format == "text" {
		p := diffPage{render.NewPage(c.App.Writer)}
		show = func(o *compare.Object) error { p.object(o); return nil }
		d.end = func() error { return d.printEnd(p) }
	} else {
		list := render.NewList(c.App.Writer, format)
		show = func(o *compare.Object) error { return list.Add(differenceOf(o)) }
		d.end = func() error { return d.endList(list, format) }
		if format == "json" {
			head, err := diffHead(c, same, old, new)
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

// diffDocument is what diff -o json prints before its objects.
type diffDocument struct {
	documentHead
	NewInput    inputInfo    `json:"newInput"`    // input is OLD
	SameCluster compare.Same `json:"sameCluster"` // "yes", "no" or "unknown"
}

// diffTail is what it prints after them.
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

func diffHead(c *cli.Context, same compare.Same, old, new *opened) (doc diffDocument, err error) {
	head, err := old.document(c.Context, "Diff")
	if err != nil {
		return doc, err
	}
	newInput, err := new.input(c.Context)
	return diffDocument{head, newInput, same}, err
}

// difference is one object that differs, as JSON.
type difference struct {
	Op        compare.Op       `json:"op"`
	Key       string           `json:"key"`
	Resource  string           `json:"resource,omitempty"`
	Cluster   string           `json:"cluster,omitempty"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name,omitempty"`
	Old       *compare.Version `json:"old,omitempty"`
	New       *compare.Version `json:"new,omitempty"`
	Changes   []differ.Change  `json:"changes,omitempty"`
	Folded    int              `json:"folded,omitempty"`
	Notes     []string         `json:"notes,omitempty"`
}

func differenceOf(o *compare.Object) difference {
	return difference{
		Op: o.Op, Key: o.Key, Resource: resourceOf(o), Cluster: o.Place.Cluster, Namespace: o.Place.Namespace, Name: o.Place.Name,
		Old: o.Old, New: o.New, Changes: o.Changes, Folded: o.Folded, Notes: o.Notes,
	}
}

func resourceOf(o *compare.Object) string {
	if o.Place.Resource.Resource == "" {
		return ""
	}
	return o.Place.Resource.String()
}
