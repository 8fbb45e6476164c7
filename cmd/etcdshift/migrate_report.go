package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/etcdshift/etcdshift/transform"
)

// printReport prints a report for a person: what became of the records first, what to do next last.
func printReport(w io.Writer, r *transform.Report) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %s\n", r.Command, outcome(r))
	if r.Outcome != transform.Failed { // else none of it is known for sure
		printFiles(out, r)
		printKinds(out, r)
		printChanges(out, r)
	}
	printProblems(out, r)
	printNext(out, r)
	return out.Flush() // its error is the first of any of the above
}

// outcome says in words how the run ended.
func outcome(r *transform.Report) string {
	switch r.Outcome {
	case transform.Written:
		return "written and verified"
	case transform.Unchanged:
		return "nothing had to change; the output is a copy of the input"
	case transform.Planned:
		return "a dry run; nothing was written"
	case transform.Refused:
		return "refused; nothing was written"
	}
	return "failed; nothing was written"
}

func printFiles(w io.Writer, r *transform.Report) {
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("", "PATH", "REVISION", "KEYS", "BYTES", "SHA256")
	file := func(name string, f transform.FileInfo) {
		t.row(name, f.Path, f.Revision, f.Keys, f.Bytes, f.SHA256)
	}
	file("in", r.Input)
	if r.Output != nil {
		file("out", *r.Output)
	}
	t.flush()
}

func printKinds(w io.Writer, r *transform.Report) {
	if len(r.Kinds) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("KIND", "FROM", "TO", "MIGRATED", "UNCHANGED", "SKIPPED", "CONFLICTS")
	for _, k := range r.Kinds {
		t.row(k.Kind, k.From, k.To, k.Migrated, k.Unchanged, k.Skipped, k.Conflicts)
	}
	t.flush()
}

func printChanges(w io.Writer, r *transform.Report) {
	what := "records"
	if r.Outcome != transform.Written && r.Outcome != transform.Unchanged {
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
		fmt.Fprintf(w, "UIDs: %d as clients saw them before, %d new\n", seen, len(r.UIDs)-seen)
	}
	if len(r.References) > 0 {
		fmt.Fprintf(w, "owner references: %d rewritten\n", len(r.References))
	}
	if len(r.Saved) > 0 {
		fmt.Fprintf(w, "deleted objects that the report keeps: %d\n", len(r.Saved))
	}
	if len(r.Renamed) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("RENAMED", "NAMESPACE", "FROM", "TO")
	for _, n := range r.Renamed {
		t.row(n.Kind, n.Namespace, n.From, n.To)
	}
	t.flush()
}

// printProblems lists all of them, errors first.
func printProblems(w io.Writer, r *transform.Report) {
	if len(r.Problems) == 0 {
		return
	}
	problems := slices.Clone(r.Problems)
	slices.SortStableFunc(problems, func(a, b transform.Problem) int {
		return rank(a) - rank(b)
	})
	fmt.Fprintln(w)
	for _, p := range problems {
		where := ""
		if p.Key != "" {
			where = printable(p.Key) + ": "
		}
		fmt.Fprintf(w, "%s %s: %s%s (%s)\n", p.Level, printable(p.Code), where, printable(p.Reason), printable(p.Decision))
	}
}

func rank(p transform.Problem) int {
	if p.Level == transform.LevelError {
		return 0
	}
	return 1
}

// printNext ends with what to do now.
func printNext(w io.Writer, r *transform.Report) {
	if len(r.Restore) > 0 {
		fmt.Fprint(w, "\nrestore, one command on each member:\n")
		for _, command := range r.Restore {
			fmt.Fprintf(w, "   %s\n", printable(command))
		}
	}
	if len(r.Steps) > 0 {
		fmt.Fprint(w, "\nby hand:\n")
		for i, step := range r.Steps {
			fmt.Fprintf(w, "%3d. %s\n", i+1, printable(step))
		}
	}
}

// plural is a number and what it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
