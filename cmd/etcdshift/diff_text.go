package main

import (
	"fmt"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/render"
)

// diffPage prints differences for people.
type diffPage struct{ *render.Page }

// object prints one object that differs.
func (p diffPage) object(o *compare.Object) {
	name := o.Subject.String()
	switch o.Op {
	case compare.Added:
		p.Line(render.Green, "added "+name)
	case compare.Removed:
		p.Line(render.Red, "removed "+name)
	default:
		p.Line(render.Bold, string(o.Op)+" "+name)
	}
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
	switch l.Op {
	case compare.Added:
		p.Line(render.Green, fmt.Sprintf("added etcd lease %s (%d s)", l.ID, l.NewTTL))
	case compare.Removed:
		p.Line(render.Red, fmt.Sprintf("removed etcd lease %s (%d s)", l.ID, l.OldTTL))
	default:
		p.Line(render.Bold, fmt.Sprintf("changed etcd lease %s (%d s, was %d s)", l.ID, l.NewTTL, l.OldTTL))
	}
}

// printEnd prints the leases that differ, and how many objects of each resource do.
func (d *differences) printEnd(p diffPage) error {
	tail := d.tail()
	if !d.silent {
		for _, l := range tail.Leases {
			p.lease(l)
		}
	}
	if err := d.printSummary(p); err != nil {
		return err
	}
	if n := len(tail.Leases); n > 0 {
		fmt.Fprintf(p, "%s of etcd granted, gone or changed\n", render.Plural(n, "lease"))
	}
	return p.Flush()
}

func (d *differences) printSummary(p diffPage) error {
	total := d.summary.Total()
	switch {
	case total.Found() > 0:
		if !d.silent {
			p.Line(render.Plain, "")
		}
		t := render.NewTable(p)
		t.Row("RESOURCE", "ADDED", "REMOVED", "CHANGED", "RECREATED", "FOLDED")
		for _, c := range d.summary.Rows() {
			if c.Resource == "" {
				c.Resource = "(no resource)"
			}
			t.Row(c.Resource, c.Added, c.Removed, c.Changed, c.Recreated, c.Folded)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	case d.found() == 0:
		fmt.Fprintln(p, "no difference")
	}
	if total.Folded > 0 {
		fmt.Fprintf(p, "%s with nothing but noise; --all shows it\n", render.Plural(total.Folded, "object"))
	}
	if n := d.tail().FoldedLeases; n > 0 {
		fmt.Fprintf(p, "%s of etcd granted, gone or changed; --all shows them\n", render.Plural(n, "lease"))
	}
	return nil
}
