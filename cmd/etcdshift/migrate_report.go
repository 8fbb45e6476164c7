package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// mostListed is how many entries of one sort are printed; a large cluster may have thousands, and the report has them all.
const mostListed = 20

// printReport prints a report for a person: what became of the records first, what to do next last.
func printReport(w io.Writer, r *transform.Report) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %s\n", r.Command, outcome(r))
	planned := r.Outcome != transform.Failed && r.Outcome != transform.Refused
	if r.Outcome != transform.Failed { // else none of it is known for sure
		printFiles(out, r)
		if len(r.Sections) == 0 { // else a section says more
			printTable(out, kindsTable(r))
		}
		for _, s := range append(slices.Clip(r.Sections), r.Appendix) {
			printSection(out, s, r.Outcome)
		}
	}
	if planned && r.Appendix == nil { // else it is a plan that nobody will carry out, or a new file
		printChanges(out, r)
	}
	printProblems(out, r)
	if planned {
		printNext(out, r)
	}
	return out.Flush() // its error is the first of any of the above
}

// outcome says in words how the run ended.
func outcome(r *transform.Report) string {
	switch r.Outcome {
	case transform.Written:
		return "written and verified"
	case transform.Unchanged:
		return "nothing had to change; the output " + sameRecords(r)
	case transform.Planned:
		return "a dry run; nothing was written"
	case transform.Refused:
		return "refused; nothing was written"
	}
	return "failed; nothing was written"
}

// sameRecords says what the output of a run is that changed nothing: a copy, but where the input is no snapshot as etcd saves it.
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

func printFiles(w io.Writer, r *transform.Report) {
	fmt.Fprintln(w)
	t := render.NewTable(w)
	t.Row("", "PATH", "REVISION", "KEYS", "BYTES", "SHA256")
	file := func(name string, f transform.FileInfo) {
		t.Row(name, f.Path, f.Revision, f.Keys, f.Bytes, f.SHA256)
	}
	if r.Archive != nil {
		file("archive", *r.Archive)
	}
	file("in", r.Input)
	if r.Output != nil {
		file("out", *r.Output)
	}
	t.Flush()
}

func kindsTable(r *transform.Report) transform.Table {
	t, total := transform.Table{}, transform.KindCount{}
	t.Header = []any{"KIND", "FROM", "TO", "MIGRATED", "UNCHANGED", "SKIPPED", "CONFLICTS"}
	for _, k := range r.Kinds {
		t.Rows = append(t.Rows, []any{k.Kind, k.From, k.To, k.Migrated, k.Unchanged, k.Skipped, k.Conflicts})
		total.Migrated += k.Migrated
		total.Unchanged += k.Unchanged
		total.Skipped += k.Skipped
		total.Conflicts += k.Conflicts
	}
	t.Totals = [][]any{{"total", "", "", total.Migrated, total.Unchanged, total.Skipped, total.Conflicts}}
	return t
}

func printSection(w io.Writer, s transform.Section, outcome transform.Outcome) {
	if s == nil {
		return
	}
	for _, t := range s.Tables(outcome) {
		printTable(w, t)
	}
}

// printTable prints a table that has rows or notes.
func printTable(w io.Writer, table transform.Table) {
	if len(table.Rows)+len(table.Notes) == 0 {
		return
	}
	fmt.Fprintln(w)
	if table.Title != "" {
		fmt.Fprintln(w, render.Printable(table.Title))
	}
	rows := table.Rows
	if table.Of != "" {
		rows = rows[:min(len(rows), mostListed)]
	}
	t := render.NewTable(w)
	if len(rows) > 0 && table.Header != nil {
		t.Row(table.Header...)
	}
	for _, row := range append(slices.Clip(rows), table.Totals...) {
		t.Row(row...)
	}
	t.Flush()
	if table.Of != "" {
		printMore(w, len(table.Rows), table.Of)
	}
	for _, note := range table.Notes {
		fmt.Fprintln(w, render.Printable(note))
	}
}

func printChanges(w io.Writer, r *transform.Report) {
	what := "records"
	if r.Outcome == transform.Planned {
		what = "records that would be changed"
	}
	fmt.Fprintf(w, "\n%s: %d created, %d updated, %d deleted\n", what, r.Changes.Created, r.Changes.Updated, r.Changes.Deleted)
	if len(r.UIDs) > 0 {
		seen := 0
		for _, u := range r.UIDs {
			if u.Seen == u.Written {
				seen++
			}
		}
		fmt.Fprintf(w, "UIDs: %d as clients saw them before, %s\n", seen, render.Plural(len(r.UIDs)-seen, "other"))
	}
	if len(r.References) > 0 {
		fmt.Fprintf(w, "owner references: %d rewritten\n", len(r.References))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Saved)) {
		fmt.Fprintf(w, "deleted, and kept by --report: %s\n", render.Printable(key))
	}
	renamed := transform.Table{Header: []any{"RENAMED", "NAMESPACE", "FROM", "TO"}, Of: "renamed"}
	for _, n := range r.Renamed {
		renamed.Rows = append(renamed.Rows, []any{n.Kind, n.Namespace, n.From, n.To})
	}
	printTable(w, renamed)
}

// printMore says how many of n entries were not printed.
func printMore(w io.Writer, n int, what string) {
	if n > mostListed {
		fmt.Fprintf(w, "... and %d more %s; --report lists them all\n", n-mostListed, what)
	}
}

// printProblems lists them by code, errors first.
func printProblems(w io.Writer, r *transform.Report) {
	var order []string
	groups := map[string][]finding.Finding{}
	errors := 0
	for _, level := range []finding.Level{finding.Error, finding.Warning} {
		for _, p := range r.Problems {
			if p.Level != level {
				continue
			}
			name := fmt.Sprintf("%s %s", level, p.Code.Name)
			if groups[name] == nil {
				order = append(order, name)
			}
			groups[name] = append(groups[name], p)
			if level == finding.Error {
				errors++
			}
		}
	}
	if len(order) > 0 {
		fmt.Fprintf(w, "\nproblems: %s, %s\n", render.Plural(errors, "error"), render.Plural(len(r.Problems)-errors, "warning"))
	}
	for _, name := range order {
		for _, p := range groups[name][:min(len(groups[name]), mostListed)] {
			fmt.Fprintf(w, "%s: %s\n", name, problemText(p))
		}
		printMore(w, len(groups[name]), "of "+name)
	}
}

// problemText is what a problem is about, and what was done about it where that is not nothing.
func problemText(p finding.Finding) string {
	text := render.Printable(p.Reason)
	if p.Key != "" {
		text = render.Printable(p.Key) + ": " + text
	}
	if p.Outcome != finding.Noted {
		text += " [" + render.Printable(string(p.Outcome)) + "]"
	}
	return text
}

// printNext ends with what to do now.
func printNext(w io.Writer, r *transform.Report) {
	before := 0
	if len(r.Restore) > 0 {
		before = r.BeforeRestore
		printSteps(w, "by hand, before the restore", r.Steps[:before], 1)
		fmt.Fprint(w, "\nrestore, one command on each member:\n")
		for _, command := range r.Restore {
			fmt.Fprintf(w, "   %s\n", render.Printable(command))
		}
	}
	printSteps(w, "by hand", r.Steps[before:], before+1)
}

// printSteps prints steps with their numbers.
func printSteps(w io.Writer, title string, steps []string, first int) {
	if len(steps) > 0 {
		fmt.Fprintf(w, "\n%s:\n", title)
	}
	for i, step := range steps {
		fmt.Fprintf(w, "%3d. %s\n", first+i, render.Printable(step))
	}
}

// are is a number and what it counts, behind its verb.
func are(n int, what string) string {
	if n == 1 {
		return "is " + render.Plural(n, what)
	}
	return "are " + render.Plural(n, what)
}

// plural is a number and what it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
