package page

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
)

// versions are the versions at which objects are stored: those that need attention first.
func (p Page) versions() (parts []part) {
	c := p.Status.Catalogue
	needs, rest, all, empty := &table{Stack: true}, &table{}, 0, 0
	var lists []string
	for _, r := range c.Resources {
		lists = append(lists, report.Lists(r)...)
		if len(r.Versions) == 0 {
			empty++
		}
		for _, v := range r.Versions {
			t, row := rest, versionRow(r, v, len(c.Prefixes) > 1)
			if verdict := report.Verdict(r, v); verdict != "" {
				t, row = needs, append(row, cell{Text: verdict, Level: graveness(v)})
			}
			if all++; len(t.Rows) < mostVersions {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	rest.Title = "All other objects"
	if len(needs.Rows) == 0 {
		rest.Title = "All objects"
		parts = append(parts, part{Lead: "No stored version needs attention."})
	} else {
		needs.Title, needs.Head = "Objects that need attention", columns("Resource", "Stored at", "#Objects", "Storage version", "Stored versions", "Verdict")
		parts = append(parts, part{Table: needs})
	}
	rest.Head = columns("Resource", "Stored at", "#Objects", "Storage version", "Stored versions")
	rest.Others = others(all, len(needs.Rows)+len(rest.Rows), "versions; status -o json lists them all")
	if len(rest.Rows) > 0 {
		parts = append(parts, part{Table: rest})
	}
	if empty > 0 {
		parts = append(parts, part{Lead: render.Plural(empty, "CustomResourceDefinition") + " without objects."})
	}
	if c.Other > 0 {
		parts = append(parts, part{Lead: render.Plural(c.Other, "key") + " in no folder of a resource."})
	}
	for _, text := range first(lists, mostLines) {
		parts = append(parts, part{Data: data(text)})
	}
	if more := others(len(lists), mostLines, "such lists; status prints them all"); more != "" {
		parts = append(parts, part{Lead: more})
	}
	return parts
}

func versionRow(r inspect.Resource, v inspect.Version, prefixed bool) []cell {
	name, at, storage, list := r.Resource, v.APIVersion, "", ""
	if prefixed {
		name = r.Prefix + "/ " + name
	}
	if d := r.Definition; d != nil {
		storage, list = d.StorageVersion, strings.Join(d.StoredVersions, ", ")
	} else {
		at = strings.TrimSpace(at + " " + v.Kind)
	}
	if keys := report.Encrypted(v); keys != "" {
		at = strings.TrimSpace(at + " encrypted by " + keys)
	}
	return []cell{code(name), code(at), count(v.Objects), code(storage), code(list)}
}

func graveness(v inspect.Version) level {
	if v.Standing == inspect.Stale {
		return odd
	}
	return bad
}

// sizes are tables of the parts of the file.
func (p Page) sizes() (parts []part) {
	s := p.Sizes
	for _, l := range []struct {
		by, none string
		shares   []inspect.Share
		history  bool
	}{
		{"Resource", "(none)", s.Resources, true}, {"Namespace", "(cluster-scoped)", s.Namespaces, true},
		{"Owner", "(no owner)", s.Owners, false}, {"Field", "(none)", s.Fields, false},
	} {
		parts = append(parts, part{Table: shareTable(l.by, l.none, l.shares, l.history)})
	}
	return parts
}

func shareTable(by, none string, shares []inspect.Share, history bool) *table {
	t := &table{Title: "By " + strings.ToLower(by), Head: columns(by, "#Objects", "#Live bytes", "#Of all live", "#History bytes")}
	var live int64
	for _, s := range shares {
		live += s.Live
	}
	for _, s := range first(shares, mostShares) {
		name := word(none)
		if s.Name != "" {
			name = code(s.Name)
		}
		t.Rows = append(t.Rows, []cell{name, count(s.Objects), count(s.Live), bar(s.Live, live), count(s.History)})
	}
	if !history {
		t.Head = t.Head[:4]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:4]
		}
	}
	t.Others = others(len(shares), mostShares, fmt.Sprintf("rows; sizes --by %s lists them all", strings.ToLower(by)))
	return t
}

// objects are the largest objects and those that change most.
func (p Page) objects() []part {
	large := &table{Title: "Largest values", Head: columns("Key", "#Bytes")}
	for _, l := range p.Sizes.Largest {
		large.Rows = append(large.Rows, []cell{code(l.Key), count(l.Bytes)})
	}
	often := &table{Title: "Most often written", Head: columns("Key", "#Writes", "#Of them kept", "@Created")}
	for _, w := range p.Activity.Written {
		often.Rows = append(often.Rows, []cell{code(w.Key), count(w.Writes), count(w.Kept), at(w.Created)})
	}
	return []part{{Table: large}, {Table: often}}
}

// at is a time; a dash for none.
func at(t time.Time) cell {
	if t.IsZero() {
		return word("–")
	}
	return word(t.Format(time.RFC3339))
}

// history is the share of what is not live, and the leases.
func (p Page) history() []part {
	s := p.Sizes
	t := &table{Title: "What the database holds", Head: columns("Part", "#Bytes", "#Of the database", "#Records")}
	row := func(name string, bytes int64, records string) {
		t.Rows = append(t.Rows, []cell{word(name), count(bytes), bar(bytes, s.Image), word(records)})
	}
	row("live values", s.Live.Bytes, number(int64(s.Live.Records)))
	row("superseded values", s.Superseded.Bytes, number(int64(s.Superseded.Records)))
	row("tombstones", s.Tombstones.Bytes, number(int64(s.Tombstones.Records)))
	row("free pages", s.FreePages, "")
	row("overhead: room in pages, headers, other buckets", s.Overhead, "")
	row("all", s.Image, number(int64(p.Status.Records)))
	save := part{Facts: []fact{
		{"a compaction would free", []cell{word(size(s.Savings.Compaction.Bytes) + " in " + render.Plural(s.Savings.Compaction.Records, "record"))}},
		{"after a defragmentation", []cell{word("about " + size(s.Savings.Defragmented))}},
		{"after both", []cell{word("about " + size(s.Savings.Compacted))}},
	}}
	parts := []part{{Table: t}, save}
	if len(p.Leases) == 0 {
		return append(parts, part{Lead: "No leases."})
	}
	leases := &table{Title: "Leases by time to live", Head: columns("Seconds", "#Leases"), Others: others(len(p.Leases), mostShares, "times to live")}
	for _, l := range first(p.Leases, mostShares) {
		leases.Rows = append(leases.Rows, []cell{count(l.Seconds), count(l.Leases)})
	}
	held := render.Plural(p.Status.LeasedKeys, "live key") + " with a lease. A restore begins the time to live anew."
	return append(parts, part{Table: leases}, part{Lead: held})
}

// before are the differences to an older snapshot.
func (p Page) before() []part {
	d := p.Before
	parts := []part{{Facts: []fact{
		{"older file", []cell{code(d.Old.Path)}}, {"SHA-256", []cell{code(d.Old.SHA256)}},
		{"revision", []cell{count(d.Old.Revision)}}, {"keys", []cell{count(d.Old.Keys)}},
		{"of the same cluster", []cell{word(string(d.SameCluster)), code(d.Why)}},
	}}}
	t := &table{Title: "By resource", Head: columns("Resource", "#Added", "#Removed", "#Changed", "#Recreated", "#Noise alone"),
		Others: others(len(d.Summary), mostVersions, "resources; diff --summary lists them all")}
	for _, c := range first(d.Summary, mostVersions) {
		t.Rows = append(t.Rows, append([]cell{code(cmp.Or(c.Resource, "(no resource)"))}, counts(c.Added, c.Removed, c.Changed, c.Recreated, c.Folded)...))
	}
	if len(d.Summary) == 0 {
		return append(parts, part{Lead: "No differences."})
	}
	parts = append(parts, part{Table: t})
	if len(d.Objects) > 0 {
		parts = append(parts, part{Table: different(d)})
	}
	if d.FoldedLeases > 0 {
		parts = append(parts, part{Lead: render.Plural(d.FoldedLeases, "lease") + " of etcd granted, gone or changed."})
	}
	return parts
}

// different names the objects that differ, and says how many of each resource are left out.
func different(d *report.Difference) *table {
	t := &table{Title: "Objects that differ", Head: columns("What", "Object"),
		Others: others(d.Total.Found(), len(d.Objects), "objects; diff shows each, field by field")}
	named, found := map[string]int{}, map[string]int{}
	for _, o := range d.Objects {
		named[o.Resource]++
	}
	for _, c := range d.Summary {
		found[c.Resource] = c.Found()
	}
	for _, o := range d.Objects {
		t.Rows = append(t.Rows, []cell{word(string(o.Op)), code(o.Subject.String())})
		if named[o.Resource]--; named[o.Resource] > 0 {
			continue
		}
		seen := min(found[o.Resource], report.Most)
		if more := others(found[o.Resource], seen, "of "+data(cmp.Or(o.Resource, "(no resource)"))); more != "" {
			t.Rows = append(t.Rows, []cell{word("…"), code(more)})
		}
	}
	return t
}
