package finding

import (
	"cmp"
	"embed"
	"fmt"
	"strings"
)

//go:embed codes/*.md
var pages embed.FS

// Lookup returns the code of the page codes/NAME.md: "# LEVEL: TITLE", the meaning, and paragraphs
// that begin with "Remedy: ", "A warning: " or "Allow: ". A code without a page has only its name.
func Lookup(name string) *Code {
	c := &Code{Name: name}
	if page, err := pages.ReadFile("codes/" + name + ".md"); err == nil {
		_ = c.read(string(page)) // see TestPages
	}
	return c
}

// read sets the texts of a page.
func (c *Code) read(page string) (err error) {
	head, rest, _ := strings.Cut(page, "\n\n")
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
			if c.Meaning != "" {
				err = fmt.Errorf("finding/codes/%s.md: no text begins with %q: see Lookup", c.Name, Clip(label, 40))
			}
			c.Meaning = cmp.Or(c.Meaning, text)
		}
	}
	return err
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
