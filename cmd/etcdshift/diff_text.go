package main

import (
	"cmp"
	"fmt"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/render"
)

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
