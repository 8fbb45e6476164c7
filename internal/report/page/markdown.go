package page

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/etcdshift/etcdshift/internal/render"
)

// Markdown writes the page for a ticket: GitHub's Markdown, without pictures. Each text from a
// snapshot is in a code span, where it formats, links and mentions nothing.
func (p Page) Markdown(w io.Writer) error {
	c := p.content()
	m := markdown{bufio.NewWriter(w)}
	m.line("# Snapshot report: %s", fenced(c.Title))
	m.line("")
	for _, card := range c.Cards {
		m.line("- %s: **%s** (%s)", card.Name, card.Value, card.More)
	}
	for _, s := range c.Sections {
		m.line("\n## %s", s.Title)
		for _, part := range s.Parts {
			m.part(part)
		}
	}
	m.line("\n%s. Secrets are redacted.", fenced(tool(p.Version)))
	return m.w.Flush()
}

type markdown struct{ w *bufio.Writer }

func (m markdown) line(format string, args ...any) { fmt.Fprintf(m.w, format+"\n", args...) }

func (m markdown) part(p part) {
	if p.Lead != "" {
		m.line("\n%s", p.Lead)
	}
	if p.Data != "" {
		m.line("\n%s", fenced(p.Data))
	}
	if len(p.Facts) > 0 {
		m.line("\n| | |\n|---|---|")
	}
	for _, f := range p.Facts {
		m.line("| %s | %s |", f.Name, cells(f.Cells, " "))
	}
	for i, command := range p.Commands {
		if i == 0 {
			m.line("")
		}
		m.line("%d. %s", i+1, fenced(command))
	}
	if p.Table != nil {
		m.table(p.Table)
	}
	if p.Finding != nil {
		m.finding(p.Finding)
	}
	if p.Sign != nil {
		m.sign(p.Sign)
	}
}

func (m markdown) table(t *table) {
	if t.Title != "" {
		m.line("\n### %s", t.Title)
	}
	head, rule := "|", "|"
	for _, c := range t.Head {
		head += " " + c.Name + " |"
		if c.Number {
			rule += "---:|"
		} else {
			rule += "---|"
		}
	}
	m.line("\n%s\n%s", head, rule)
	for _, row := range t.Rows {
		m.line("| %s |", cells(row, " | "))
	}
	if t.Others != "" {
		m.line("\n... %s", t.Others)
	}
}

func cells(all []cell, between string) string {
	texts := make([]string, 0, len(all))
	for _, c := range all {
		text := strings.ReplaceAll(c.Text, "\u2009", "") // digits to copy
		if c.Code {
			text = strings.ReplaceAll(fenced(c.Text), "|", `\|`)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, between)
}

func (m markdown) finding(g *group) {
	m.line("\n### %s %s", strings.ToUpper(g.Level), fenced(g.Code))
	if g.Title != "" {
		m.line("\n%s", g.Title)
	}
	m.line("")
	for _, l := range g.Lines {
		m.line("- %s", strings.TrimSpace(fenced(l.Key)+" "+fenced(l.Text)))
	}
	if g.Others != "" {
		m.line("\n... %s", g.Others)
	}
	if g.Remedy != "" {
		m.line("\n%s", g.Remedy)
	}
}

func (m markdown) sign(s *signature) {
	if s.Of != "" {
		m.line("\nFor the file with the SHA-256 %s.", fenced(s.Of))
	}
	m.line("\n| Name | Role | Date | Signature |\n|---|---|---|---|")
	for range s.Rows {
		m.line("| | | | |")
	}
}

// fenced is a code span of a text, behind more backticks than it has in a row.
func fenced(text string) string {
	text = render.Printable(text)
	if text == "" {
		return ""
	}
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence, pad := strings.Repeat("`", longest+1), ""
	if longest > 0 {
		pad = " "
	}
	return fence + pad + text + pad + fence
}
