package finding

import (
	"embed"
	"strings"
)

//go:embed codes/*.md
var pages embed.FS

// Lookup returns the code of the page codes/NAME.md: "# LEVEL: TITLE", the meaning, and paragraphs
// that begin with "Remedy: ", "A warning: " or "Allow: ". A code without a page has only its name.
func Lookup(name string) *Code {
	c := &Code{Name: name}
	page, err := pages.ReadFile("codes/" + name + ".md")
	if err != nil {
		return c
	}
	head, rest, _ := strings.Cut(string(page), "\n\n")
	level, title, _ := strings.Cut(strings.TrimPrefix(head, "# "), ": ")
	c.Level, c.Title = Level(level), title
	for paragraph := range strings.SplitSeq(rest, "\n\n") {
		text := strings.ReplaceAll(strings.TrimSuffix(paragraph, "\n"), "\n", " ")
		label, behind, _ := strings.Cut(text, ": ")
		switch label {
		case "Remedy":
			c.Remedy = behind
		case "A warning":
			c.Warns = behind
		case "Allow":
			c.Allow, c.Allowed = behind, Skipped
		case "Allow, went on":
			c.Allow, c.Allowed = behind, WentOn
		case "Allow, dropped":
			c.Allow, c.Allowed = behind, Dropped
		default:
			c.Meaning = text
		}
	}
	return c
}

// As returns a copy of the code with another level and another effect of --allow. The meaning is
// the same.
func (c *Code) As(level Level, allowed Outcome) *Code {
	other := *c
	if other.Level, other.Allowed = level, allowed; allowed == "" {
		other.Allow = ""
	}
	return &other
}
