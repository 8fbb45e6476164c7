package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// mostListed is the number of printed entries of one sort. The report has all entries.
const mostListed = 20

type reportPage struct{ *render.Page }

// printReport prints the results first, and the next steps last.
func printReport(w io.Writer, r *transform.Report) error {
	p := reportPage{render.NewPage(w)}
	p.Printf("%s: %s\n", r.Command, outcome(r))
	planned := r.Outcome != transform.Failed && r.Outcome != transform.Refused
	if r.Outcome != transform.Failed { // otherwise none of this is certain
		p.files(r)
		for _, t := range r.Tables() {
			p.table(t)
		}
	}
	if planned && r.Appendix == nil { // not after a refusal; an Appendix is the table of a new file
		p.changes(r)
	}
	p.problems(r)
	if planned {
		p.next(r)
	}
	return p.Flush()
}

func outcome(r *transform.Report) string {
	switch r.Outcome {
	case transform.Written:
		return "written and verified"
	case transform.Unchanged:
		skipped := 0
		for _, k := range r.Kinds {
			skipped += k.Skipped
		}
		if skipped > 0 {
			return phrase.Count(skipped, "object") + " left unchanged, see the problems; the output " + sameRecords(r)
		}
		return "nothing had to change; the output " + sameRecords(r)
	case transform.Planned:
		return "a dry run; nothing was written"
	case transform.Refused:
		return "refused; nothing was written"
	}
	return "failed; nothing was written"
}

func sameRecords(r *transform.Report) string {
	if r.Output != nil && r.Output.SHA256 == r.Input.SHA256 {
		return "is a copy of the input"
	}
	var why []string
	for _, odd := range []struct {
		code *finding.Code
		is   string
	}{
		{transform.CodeCompressed, "the input is compressed"},
		{transform.CodeRawFile, "the input is a raw file"},
		{transform.CodeDataDir, "the input is a data directory"},
		{transform.CodeFreeList, "the input has a wrong free list"},
	} {
		if slices.ContainsFunc(r.Problems, func(p finding.Finding) bool { return p.Code == odd.code }) {
			why = append(why, odd.is)
		}
	}
	if len(why) == 0 {
		return "has the same records"
	}
	return "has the same records, but is no copy: " + strings.Join(why, ", ")
}

func (p reportPage) files(r *transform.Report) {
	var rows [][]any
	for _, f := range []struct {
		name string
		*snapshot.FileInfo
	}{{"archive", r.Archive}, {"in", &r.Input}, {"out", r.Output}} {
		if f.FileInfo != nil {
			rows = append(rows, []any{f.name, f.Path, f.Revision, f.Keys, f.Bytes, f.SHA256})
		}
	}
	p.Printf("\n")
	p.Table([]any{"", "PATH", "REVISION", "KEYS", "BYTES", "SHA256"}, rows...)
}

// table prints a table with rows or notes.
func (p reportPage) table(t transform.Table) {
	if len(t.Rows)+len(t.Notes) == 0 {
		return
	}
	p.Printf("\n")
	if t.Title != "" {
		p.Printf("%s\n", t.Title)
	}
	most := len(t.Rows)
	if t.Of != "" {
		most = min(most, mostListed)
	}
	head := t.Header
	if most == 0 {
		head = nil
	}
	p.Table(head, append(slices.Clip(t.Rows[:most]), t.Totals...)...)
	p.First("", nil, most, len(t.Rows)+t.More, " "+t.Of+"; --report lists them all")
	p.Lines("", t.Notes)
}

func (p reportPage) changes(r *transform.Report) {
	what := "records"
	if r.Outcome == transform.Planned {
		what = "records that would be changed"
	}
	p.Printf("\n%s: %d created, %d updated, %d deleted\n", what, r.Changes.Created, r.Changes.Updated,
		r.Changes.Deleted)
	seen, other := r.SeenUIDs, r.NewUIDs
	for _, u := range r.UIDs {
		if u.Seen == u.Written {
			seen++
		} else {
			other++
		}
	}
	if seen+other > 0 {
		p.Printf("UIDs: %d as clients saw them before, %s\n", seen, phrase.Count(other, "other"))
	}
	if len(r.References) > 0 {
		p.Printf("owner references: %d rewritten\n", len(r.References))
	}
	p.table(transform.Table{Title: "kept by --report as they were", Of: "objects",
		Rows: stream.Mapped(slices.Sorted(maps.Keys(r.Saved)), func(key string) []any { return []any{key} })})
	p.table(transform.Table{Header: []any{"RENAMED", "NAMESPACE", "FROM", "TO"}, Of: "renamed",
		Rows: stream.Mapped(r.Renamed, func(n transform.Rename) []any {
			return []any{n.Kind, n.Namespace,
				n.From, n.To}
		})})
}

// problems lists problems by code, errors first. Many keys with the same reason share a line.
func (p reportPage) problems(r *transform.Report) {
	var order []string
	groups, errors := map[string][]finding.Finding{}, 0
	for _, level := range []finding.Level{finding.Error, finding.Warning} {
		for _, f := range r.Problems {
			if f.Level != level {
				continue
			}
			name := fmt.Sprintf("%s %s", level, f.Code.Name)
			if groups[name] == nil {
				order = append(order, name)
			}
			groups[name] = append(groups[name], f)
			if level == finding.Error {
				errors++
			}
		}
	}
	if len(order) > 0 {
		p.Printf("\nproblems: %s, %s\n", phrase.Count(errors, "error"), phrase.Count(len(r.Problems)-errors, "warning"))
	}
	for _, name := range order {
		lines := problemLines(name, groups[name])
		p.First("", lines, mostListed, len(lines), " of "+name+"; --report lists them all")
	}
}

// problemLines returns a line for each problem of a code, or one line for many keys with the same
// reason.
func problemLines(name string, all []finding.Finding) (lines []string) {
	const shown = 3 // keys
	type group struct{ reason, outcome string }
	of := func(f finding.Finding) group { return group{withoutIndexes(f.Reason), string(f.Outcome)} }
	keys := map[group][]string{}
	for _, f := range all {
		if f.Key != "" {
			keys[of(f)] = append(keys[of(f)], f.Key)
		}
	}
	for _, f := range all {
		list := keys[of(f)]
		switch {
		case len(list) <= mostListed || f.Key == "":
			lines = append(lines, name+": "+problemText(f))
		case list[0] == f.Key:
			f.Key, f.Reason = "", of(f).reason
			lines = append(lines, fmt.Sprintf("%s: %s: %s: %s; --report lists them all", name,
				phrase.Count(len(list), "key"), problemText(f), render.Printable(phrase.List(list, shown))))
		}
	}
	return lines
}

var listIndex = pattern.New(`\[[0-9]+\]`)

// withoutIndexes returns a reason with each path of a list of paths once, without indexes.
func withoutIndexes(reason string) string {
	begin, paths, found := strings.Cut(listIndex().ReplaceAllString(reason, "[]"), " cannot hold ")
	if !found {
		return reason
	}
	var once []string
	for path := range strings.SplitSeq(paths, ", ") {
		if !slices.Contains(once, path) {
			once = append(once, path)
		}
	}
	return begin + " cannot hold " + strings.Join(once, ", ")
}

// problemText returns the key and the reason of a problem, and its decision if one was needed.
func problemText(p finding.Finding) string {
	text := about(p.Reason, p.Key)
	if p.Outcome != finding.Noted {
		text += " [" + render.Printable(string(p.Outcome)) + "]"
	}
	return text
}

func (p reportPage) next(r *transform.Report) {
	before := 0
	if r.Restored != nil {
		for _, t := range r.Restored.Tables(r.Outcome) {
			p.table(t)
		}
	}
	if len(r.Restore) > 0 {
		before = r.BeforeRestore
		p.steps("by hand, before the restore", r.Steps[:before], 1)
		p.Printf("\nrestore, one command on each member:\n")
		p.Lines("   ", r.Restore)
	}
	p.steps("by hand", r.Steps[before:], before+1)
}

func (p reportPage) steps(title string, steps []string, first int) {
	if len(steps) > 0 {
		p.Printf("\n%s:\n", title)
	}
	for i, step := range steps {
		p.Printf("%3d. %s\n", first+i, step)
	}
}
