package main

import (
	"fmt"

	"github.com/etcdshift/etcdshift/inspect/compare"
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

// printSummary prints how many objects of each resource differ; listed says that they stand above.
func printSummary(p *page, s *compare.Summary, listed bool) error {
	total := s.Total()
	if total.Found() > 0 {
		if listed {
			p.line(plain, "")
		}
		t := newTable(p.w)
		t.row("RESOURCE", "ADDED", "REMOVED", "CHANGED", "RECREATED", "FOLDED")
		for _, c := range s.Rows() {
			if c.Resource == "" {
				c.Resource = "(no resource)"
			}
			t.row(c.Resource, c.Added, c.Removed, c.Changed, c.Recreated, c.Folded)
		}
		if err := t.flush(); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(p.w, "no difference")
	}
	if total.Folded > 0 {
		fmt.Fprintf(p.w, "%s with nothing but noise; --all shows it\n", plural(total.Folded, "object"))
	}
	return p.flush()
}
