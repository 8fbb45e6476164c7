package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func printSurvey(w io.Writer, read []surveyed, found *kcp.Installation, wide bool) error {
	p := surveyPage{render.NewPage(w), wide}
	p.residents(found.Clusters)
	p.files(read, found)
	p.notes(found.Clusters)
	p.orphans(found.Orphans)
	p.stale(found.Stale)
	if n := len(found.Unchecked); n > 0 {
		p.Printf("\ncopies in the cache of %s were not checked: their shards were not given\n",
			phrase.Count(n, "logical cluster"))
	}
	p.unknown(read)
	p.problems(read)
	return p.Flush()
}

type surveyPage struct {
	*render.Page
	wide bool
}

const longestName = 256 // bytes of a cell

// rows prints a table below an empty line. The first table of a page has no empty line; other
// tables without rows are omitted.
func (p surveyPage) rows(first bool, head []any, rows [][]any) {
	if len(rows) == 0 && !first {
		return
	}
	if !first {
		p.Printf("\n")
	}
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			// a hostile value would widen the column
			if text, ok := cell.(string); ok && len(text) > longestName {
				row[i] = strings.ToValidUTF8(text[:longestName], "") + "..."
			}
		}
	}
	p.Table(head, rows...)
}

func (p surveyPage) residents(all []kcp.Resident) {
	system := func(c kcp.Resident) int { // those of each shard come last
		if strings.HasPrefix(c.Name, "system:") {
			return 1
		}
		return 0
	}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b kcp.Resident) int {
		return cmp.Or(cmp.Compare(system(a), system(b)), strings.Compare(a.Cluster.Path, b.Cluster.Path))
	})
	head := []any{"NAME", "PATH", "SHARD", "PHASE", "OWNER", "KEYS", "BYTES", "CHILDREN", "STATE"}
	if p.wide {
		head = append(head, "IDENTITIES", "DEFINITIONS", "UID", "FILE")
	}
	p.rows(true, head, stream.Mapped(sorted, func(c kcp.Resident) []any {
		owner := ""
		if c.Owner != nil {
			owner = c.Owner.Cluster + "/" + c.Owner.Name
		}
		row := []any{
			c.Name, cmp.Or(c.Cluster.Path, "-"), cmp.Or(c.Shard, "-"), cmp.Or(c.Phase, "-"), cmp.Or(owner, "-"), c.Keys,
			c.Bytes, len(c.Children),
			cmp.Or(strings.Join(states(c), ","), "-"),
		}
		if p.wide {
			row = append(row, len(c.Identities), definitionsOf(c), cmp.Or(c.UID, "-"), c.Place.Path)
		}
		return row
	}))
}

// definitionsOf returns the numbers of present and needed bound definitions.
func definitionsOf(c kcp.Resident) string {
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

func states(c kcp.Resident) (words []string) {
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

func (p surveyPage) files(read []surveyed, found *kcp.Installation) {
	if len(found.Absent) > 0 {
		p.Printf("\nregistered, and not among the files: shard %s\n", strings.Join(found.Absent, ", "))
	}
	for _, name := range found.Doubled {
		p.Printf("\nseveral files, or storages of one, say that they are shard %s: what lives there lives twice\n",
			name)
	}
	for _, f := range read {
		for _, s := range f.Shards {
			if s.Partial {
				p.Printf("\n%s, below %s, is no whole shard: it lacks the LogicalCluster of system:shard\n",
					f.Path, s.Prefix+"/")
			}
		}
	}
}

func (p surveyPage) notes(all []kcp.Resident) {
	var notes []string
	for _, c := range all {
		for _, f := range c.Findings() {
			notes = append(notes, c.Called()+" "+f.Reason)
		}
		if c.Undecryptable > 0 {
			notes = append(notes, fmt.Sprintf("%s has %s that no given key decrypts", c.Called(),
				phrase.Count(c.Undecryptable, "record")))
		}
	}
	if len(notes) > 0 {
		p.Printf("\n")
	}
	p.Lines("", notes)
}

func (p surveyPage) orphans(all []kcp.Stray) {
	p.rows(false, []any{"ORPHANS OF", "ON SHARD", "LIVES ON", "KEYS", "BYTES", "WHAT"},
		stream.Mapped(all, func(o kcp.Stray) []any {
			lives := kcp.Residence(o.LivesOn)
			if len(o.LivesOn) == 0 && o.Said != "" {
				lives = o.Said + " (its Workspace says)"
			}
			name := o.Name
			if o.PathOf != "" {
				name += " (path of " + o.PathOf + ")"
			}
			return []any{name, o.Place.Called(), lives, o.Amount.Keys, o.Bytes, kcp.Contents(o.Resources)}
		}))
	p.keys("KEY OF AN ORPHAN", slices.Concat(stream.Mapped(all, func(o kcp.Stray) []string { return o.Keys })...))
}

func (p surveyPage) stale(all []kcp.Stale) {
	head := []any{"STALE COPIES OF", "FROM SHARD", "LIVES ON", "IN CACHE", "KEYS", "BYTES", "WHAT"}
	p.rows(false, head, stream.Mapped(all, func(c kcp.Stale) []any {
		return []any{c.Cluster, c.Copy.Shard, kcp.Residence(c.LivesOn), c.Path, c.Amount.Keys, c.Bytes,
			kcp.Contents(c.Resources)}
	}))
	p.keys("KEY OF A STALE COPY", slices.Concat(stream.Mapped(all, func(c kcp.Stale) []string { return c.Keys })...))
}

// keys prints the keys counted by a table, if requested.
func (p surveyPage) keys(head string, keys []string) {
	if p.wide {
		p.rows(false, []any{head}, stream.Mapped(keys, func(k string) []any { return []any{k} }))
	}
}

// unknown prints keys of no logical cluster; keys of every kcp etcd only with -o wide.
func (p surveyPage) unknown(read []surveyed) {
	var rows [][]any
	for _, f := range read {
		for _, u := range f.Unknown {
			if p.wide || !u.Expected {
				rows = append(rows, []any{u.Key, f.Path, u.Bytes, u.Reason})
			}
		}
	}
	p.rows(false, []any{"KEY OF NO LOGICAL CLUSTER", "FILE", "BYTES", "WHY"}, rows)
	for _, f := range read {
		for _, o := range f.Others {
			p.Printf("\n%s has %s below %s too, which is %s and not kcp\n", f.Path, phrase.Count(o.Keys, "key"),
				o.Prefix+"/", o.Flavour)
		}
	}
}

func (p surveyPage) problems(read []surveyed) {
	p.rows(false, []any{"PROBLEM", "FILE", "KEY", "WHY"}, stream.Mapped(problemsOf(read), func(r listProblem) []any {
		return []any{r.Code, r.File, r.Key, r.Reason}
	}))
}
