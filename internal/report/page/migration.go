package page

import (
	"cmp"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/transform"
)

// migrationCard is the verdict of a migration.
func migrationCard(m *report.Migration) card {
	errors, warnings := 0, 0
	for _, p := range m.Problems {
		if p.Level == finding.Error {
			errors++
		} else {
			warnings++
		}
	}
	c := card{"Migration", outcome(m.Outcome), render.Plural(errors, "error") + ", " + render.Plural(warnings, "warning"), good}
	switch {
	case m.Fits == report.FitsNot:
		c.More, c.Level = "of another file", bad
	case m.Outcome == transform.Refused, m.Outcome == transform.Failed, errors > 0:
		c.Level = bad
	case warnings > 0:
		c.Level = odd
	}
	return c
}

// outcome is the outcome as this program knows it; the file may hold any text.
func outcome(o transform.Outcome) string {
	switch o {
	case transform.Written, transform.Unchanged, transform.Planned, transform.Refused, transform.Failed:
		return string(o)
	}
	return "unknown"
}

// migration is the report of a migration.
func (p Page) migration() []part {
	m := p.Migration
	fits := map[report.Fits]string{
		report.FitsOutput: "This file is the output of the migration: the SHA-256 is the same.",
		report.FitsInput:  "This file is the input of the migration: the SHA-256 is the same.",
		report.FitsNot:    "This file is neither the input nor the output of the migration: no SHA-256 is the same.",
	}
	facts := []fact{{"command", []cell{code(m.Command)}}, {"outcome", []cell{code(string(m.Outcome))}}}
	if m.Error != "" {
		facts = append(facts, fact{"error", []cell{code(m.Error)}})
	}
	if m.Tool != nil {
		facts = append(facts, fact{"program", []cell{code(m.Tool.Name + " " + m.Tool.Version)}})
	}
	for _, f := range []struct {
		name string
		file *transform.FileInfo
	}{{"input", &m.Input}, {"output", m.Output}, {"archive", m.Archive}} {
		if f.file != nil {
			facts = append(facts, fact{f.name, []cell{code(f.file.Path), code(f.file.SHA256),
				word(fmt.Sprintf("revision %s, %s keys", number(f.file.Revision), number(int64(f.file.Keys))))}})
		}
	}
	facts = append(facts, fact{"records", []cell{word(fmt.Sprintf("%s created, %s updated, %s deleted",
		number(int64(m.Changes.Created)), number(int64(m.Changes.Updated)), number(int64(m.Changes.Deleted))))}})
	for _, l := range first(m.Lists, mostLines) {
		facts = append(facts, fact{"listed in the report", []cell{count(l.Count), code(l.Name)}})
	}
	facts = append(facts, more(len(m.Lists), "lists")...)
	parts := []part{{Lead: fits[m.Fits]}, {Facts: facts}}
	if len(m.Kinds) > 0 {
		parts = append(parts, part{Table: kinds(m)})
	}
	return append(append(parts, problems(m)...), steps(m)...)
}

func kinds(m *report.Migration) *table {
	t := &table{Title: "By kind", Head: columns("Kind", "From", "To", "#Migrated", "#Unchanged", "#Skipped", "#Conflicts"),
		Others: others(len(m.Kinds), mostVersions, "kinds")}
	for _, k := range first(m.Kinds, mostVersions) {
		t.Rows = append(t.Rows, append([]cell{code(k.Kind), code(k.From), code(k.To)}, counts(k.Migrated, k.Unchanged, k.Skipped, k.Conflicts)...))
	}
	return t
}

// problems are the problems by code, in the order of the report.
func problems(m *report.Migration) (parts []part) {
	groups := map[string]*group{}
	for _, p := range m.Problems {
		name := string(p.Level) + " " + p.Code
		if groups[name] == nil && len(groups) < mostGroups {
			groups[name] = &group{Level: data(string(p.Level)), Code: data(p.Code)}
			parts = append(parts, part{Finding: groups[name]})
		}
		g := groups[name]
		if g == nil {
			continue
		}
		if g.Count++; g.Count <= mostLines {
			g.Lines = append(g.Lines, line{data(p.Key), data(p.Reason + decision(p))})
		}
	}
	shown := 0
	for _, g := range groups {
		g.Others = others(g.Count, mostLines, "of this code")
		shown += g.Count
	}
	if more := others(len(m.Problems), shown, "problems of other codes"); more != "" {
		parts = append(parts, part{Lead: more})
	}
	return parts
}

func decision(p report.Problem) string {
	if d := cmp.Or(p.Decision, string(finding.Noted)); d != string(finding.Noted) {
		return " [" + d + "]"
	}
	return ""
}

// steps are what is left to do.
func steps(m *report.Migration) (parts []part) {
	for _, l := range []struct {
		lead string
		all  []string
	}{{"By hand:", m.Steps}, {"Restore, one command on each member:", m.Restore}} {
		if len(l.all) == 0 {
			continue
		}
		var shown []string
		for _, text := range first(l.all, mostCommands) {
			shown = append(shown, whole(text))
		}
		parts = append(parts, part{Lead: l.lead}, part{Commands: shown})
		if more := others(len(l.all), mostCommands, "in the report"); more != "" {
			parts = append(parts, part{Lead: more})
		}
	}
	return parts
}

// whole is data for a text to copy: it may be longer.
func whole(text string) string {
	const most = 4096
	if len(text) > most {
		return data(text)
	}
	return render.Printable(text)
}
