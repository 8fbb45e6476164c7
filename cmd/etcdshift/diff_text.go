package main

import (
	"fmt"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/keys"
)

// object prints one object that differs.
func (p *page) object(o *compare.Object) {
	name := o.Key
	if o.Place.Resource.Resource != "" {
		name = placeName(o.Place)
	}
	switch o.Op {
	case compare.Added:
		p.line(green, "added "+name)
	case compare.Removed:
		p.line(red, "removed "+name)
	default:
		p.line(bold, string(o.Op)+" "+name)
	}
	for _, note := range o.Notes {
		p.line(cyan, "  ("+note+")")
	}
	p.changes("  ", o.Changes)
	if o.Folded > 0 {
		p.line(cyan, fmt.Sprintf("  (and %s folded away)", plural(o.Folded, "change")))
	}
}

// placeName is an object as people name it: "deployments.apps shop/web", with the logical cluster before where there is one.
func placeName(k keys.Key) string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	if k.Cluster != "" {
		name = k.Cluster + "|" + name
	}
	return k.Resource.String() + " " + name
}

// lease prints one lease that differs.
func (p *page) lease(l compare.Lease) {
	switch l.Op {
	case compare.Added:
		p.line(green, fmt.Sprintf("added etcd lease %s (%d s)", l.ID, l.NewTTL))
	case compare.Removed:
		p.line(red, fmt.Sprintf("removed etcd lease %s (%d s)", l.ID, l.OldTTL))
	default:
		p.line(bold, fmt.Sprintf("changed etcd lease %s (%d s, was %d s)", l.ID, l.NewTTL, l.OldTTL))
	}
}

// printEnd prints the leases that differ, and how many objects of each resource do.
func (d *differences) printEnd(p *page) error {
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
		fmt.Fprintf(p.w, "%s of etcd granted, gone or changed\n", plural(n, "lease"))
	}
	return p.flush()
}

func (d *differences) printSummary(p *page) error {
	total := d.summary.Total()
	switch {
	case total.Found() > 0:
		if !d.silent {
			p.line(plain, "")
		}
		t := newTable(p.w)
		t.row("RESOURCE", "ADDED", "REMOVED", "CHANGED", "RECREATED", "FOLDED")
		for _, c := range d.summary.Rows() {
			if c.Resource == "" {
				c.Resource = "(no resource)"
			}
			t.row(c.Resource, c.Added, c.Removed, c.Changed, c.Recreated, c.Folded)
		}
		if err := t.flush(); err != nil {
			return err
		}
	case d.found() == 0:
		fmt.Fprintln(p.w, "no difference")
	}
	if total.Folded > 0 {
		fmt.Fprintf(p.w, "%s with nothing but noise; --all shows it\n", plural(total.Folded, "object"))
	}
	if n := d.tail().FoldedLeases; n > 0 {
		fmt.Fprintf(p.w, "%s of etcd granted, gone or changed; --all shows them\n", plural(n, "lease"))
	}
	return nil
}
