package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/internal/render"
)

// printSurvey prints the list for people.
func printSurvey(w io.Writer, read []surveyed, found *clusters.Installation, wide bool) error {
	p := surveyPage{bufio.NewWriter(w), wide}
	p.residents(found.Clusters)
	p.files(read, found)
	p.notes(found.Clusters)
	p.orphans(found.Orphans)
	p.stale(found.Stale)
	if n := len(found.Unjudged); n > 0 {
		fmt.Fprintf(p.out, "\ncopies in the cache of %s are not judged: the shards that they are of were not given\n", render.Plural(n, "logical cluster"))
	}
	p.unknown(read)
	p.problems(read)
	return p.out.Flush()
}

// surveyPage is what cluster list prints for people. Its writer keeps an error of any line until the end.
type surveyPage struct {
	out  *bufio.Writer
	wide bool
}

// rows prints a table below an empty line, unless it is the first of the page.
func (p surveyPage) rows(first bool, head []any, rows [][]any) {
	if !first {
		fmt.Fprintln(p.out)
	}
	t := render.NewTable(p.out)
	t.Row(head...)
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			row[i] = shortened(cell)
		}
		t.Row(row...)
	}
	_ = t.Flush()
}

// shortened is a cell as far as a column gets wide for it, whatever a hostile value has in it.
func shortened(cell any) any {
	const most = 256 // bytes; longer than a name can be
	if text, ok := cell.(string); ok && len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return cell
}

func (p surveyPage) residents(all []clusters.Resident) {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b clusters.Resident) int {
		return cmp.Or(compareBool(system(a), system(b)), strings.Compare(a.Cluster.Path, b.Cluster.Path))
	})
	head := []any{"NAME", "PATH", "SHARD", "PHASE", "OWNER", "KEYS", "BYTES", "CHILDREN", "STATE"}
	if p.wide {
		head = append(head, "IDENTITIES", "DEFINITIONS", "UID", "FILE")
	}
	p.rows(true, head, mapped(sorted, func(c clusters.Resident) []any {
		owner := ""
		if c.Owner != nil {
			owner = c.Owner.Cluster + "/" + c.Owner.Name
		}
		row := []any{
			c.Name, dash(c.Cluster.Path), dash(c.Shard), dash(c.Phase), dash(owner), c.Keys, c.Bytes, len(c.Children),
			dash(strings.Join(states(c), ",")),
		}
		if p.wide {
			row = append(row, len(c.Identities), definitionsOf(c), dash(c.UID), c.Place.Path)
		}
		return row
	}))
}

// system tells whether a logical cluster is one that each shard has; root, which has the workspaces below it, comes first.
func system(c clusters.Resident) bool { return strings.HasPrefix(c.Name, "system:") }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// definitionsOf says how many of the bound definitions that are needed are there.
func definitionsOf(c clusters.Resident) string {
	present, all := 0, 0
	for _, d := range c.Definitions {
		if d.Virtual {
			continue
		}
		all++
		if d.Present {
			present++
		}
	}
	return fmt.Sprintf("%d/%d", present, all)
}

// states are what is out of the ordinary with a logical cluster, in a word each.
func states(c clusters.Resident) (words []string) {
	for _, s := range []struct {
		word string
		is   bool
	}{
		{"terminating", c.Terminating != ""},
		{"migrating", c.Migrating != ""},
		{"inactive", c.Inactive},
		{"twice", len(c.Elsewhere) > 0},
		{"problems", len(c.Problems) > 0},
	} {
		if s.is {
			words = append(words, s.word)
		}
	}
	return words
}

// files tells what is out of the ordinary with the files themselves.
func (p surveyPage) files(read []surveyed, found *clusters.Installation) {
	if len(found.Absent) > 0 {
		fmt.Fprintf(p.out, "\nregistered, and not among the files: shard %s\n", render.Printable(strings.Join(found.Absent, ", ")))
	}
	for _, name := range found.Doubled {
		fmt.Fprintf(p.out, "\nseveral files, or storages of one, say that they are shard %s: what lives there lives twice\n", render.Printable(name))
	}
	for _, f := range read {
		for _, s := range f.Shards {
			if s.Partial {
				below := render.Printable(s.Prefix + "/")
				fmt.Fprintf(p.out, "\n%s, below %s, is no whole shard: it lacks the LogicalCluster of system:shard\n", render.Printable(f.Path), below)
			}
		}
	}
}

// notes prints sentences about single logical clusters.
func (p surveyPage) notes(all []clusters.Resident) {
	var notes []string
	for _, c := range all {
		for _, f := range c.Findings() {
			notes = append(notes, c.Called()+" "+f.Reason)
		}
		if c.Undecryptable > 0 {
			notes = append(notes, fmt.Sprintf("%s has %s that no given key decrypts", c.Called(), render.Plural(c.Undecryptable, "record")))
		}
	}
	if len(notes) > 0 {
		fmt.Fprintln(p.out)
	}
	for _, note := range notes {
		fmt.Fprintln(p.out, render.Printable(note))
	}
}

func (p surveyPage) orphans(all []clusters.Stray) {
	if len(all) == 0 {
		return
	}
	p.rows(false, []any{"ORPHANS OF", "ON SHARD", "LIVES ON", "KEYS", "BYTES", "WHAT"}, mapped(all, func(o clusters.Stray) []any {
		lives := clusters.Residence(o.LivesOn)
		if len(o.LivesOn) == 0 && o.Said != "" {
			lives = o.Said + " (its Workspace says)"
		}
		return []any{o.Name, o.Place.Called(), lives, o.Amount.Keys, o.Bytes, clusters.Contents(o.Resources)}
	}))
	p.keys("KEY OF AN ORPHAN", slices.Concat(mapped(all, func(o clusters.Stray) []string { return o.Keys })...))
}

func (p surveyPage) stale(all []clusters.Stale) {
	if len(all) == 0 {
		return
	}
	head := []any{"STALE COPIES OF", "FROM SHARD", "LIVES ON", "IN CACHE", "KEYS", "BYTES", "WHAT"}
	p.rows(false, head, mapped(all, func(c clusters.Stale) []any {
		return []any{c.Cluster, c.Copy.Shard, clusters.Residence(c.LivesOn), c.Path, c.Amount.Keys, c.Bytes, clusters.Contents(c.Resources)}
	}))
	p.keys("KEY OF A STALE COPY", slices.Concat(mapped(all, func(c clusters.Stale) []string { return c.Keys })...))
}

// keys prints those that a table counts, where asked to.
func (p surveyPage) keys(head string, keys []string) {
	if p.wide {
		p.rows(false, []any{head}, mapped(keys, func(k string) []any { return []any{k} }))
	}
}

// unknown prints the keys that are of no logical cluster; those that every etcd of kcp has only where all is asked for.
func (p surveyPage) unknown(read []surveyed) {
	var rows [][]any
	for _, f := range read {
		for _, u := range f.Unknown {
			if p.wide || !u.Expected {
				rows = append(rows, []any{u.Key, f.Path, u.Bytes, u.Reason})
			}
		}
	}
	if len(rows) > 0 {
		p.rows(false, []any{"KEY OF NO LOGICAL CLUSTER", "FILE", "BYTES", "WHY"}, rows)
	}
	for _, f := range read {
		for _, o := range f.Others {
			below := render.Printable(o.Prefix + "/")
			fmt.Fprintf(p.out, "\n%s has %s below %s too, which is %s and not kcp\n", render.Printable(f.Path), render.Plural(o.Keys, "key"), below, o.Flavour)
		}
	}
}

func (p surveyPage) problems(read []surveyed) {
	if all := problemsOf(read); len(all) > 0 {
		p.rows(false, []any{"PROBLEM", "FILE", "KEY", "WHY"}, mapped(all, func(r listProblem) []any {
			return []any{r.Code, r.File, r.Key, r.Reason}
		}))
	}
}
