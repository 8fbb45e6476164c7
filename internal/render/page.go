package render

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/etcdshift/etcdshift/internal/differ"
)

// Page prints text for people, in colour on a terminal. Flush returns the first error of any print.
type Page struct {
	*bufio.Writer
	colour bool
}

// NewPage returns a Page on w.
func NewPage(w io.Writer) *Page {
	return &Page{bufio.NewWriter(w), IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Colour is a colour of a terminal (ECMA-48, SGR).
type Colour string

// The colours of lines.
const (
	Plain Colour = ""
	Bold  Colour = "1"
	Red   Colour = "31"
	Green Colour = "32"
	Cyan  Colour = "36"
)

// Line prints a line, quoted where it is not printable. A tab stays one.
func (p *Page) Line(colour Colour, text string) {
	if untabbed := strings.ReplaceAll(text, "\t", " "); Printable(untabbed) != untabbed {
		text = Printable(text)
	}
	if p.colour && colour != Plain {
		text = "\x1b[" + string(colour) + "m" + text + "\x1b[m"
	}
	p.WriteString(text + "\n")
}

// Printf quotes texts and errors among its arguments that are not printable.
func (p *Page) Printf(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case error:
			args[i] = Printable(arg.Error())
		default:
			if reflect.ValueOf(arg).Kind() == reflect.String {
				args[i] = Printable(fmt.Sprint(arg))
			}
		}
	}
	fmt.Fprintf(p, format, args...)
}

// Lines prints each line behind an indent.
func (p *Page) Lines(indent string, lines []string) {
	for _, line := range lines {
		p.Printf("%s%s\n", indent, line)
	}
}

// First prints at most so many lines, then the number of the others before rest.
func (p *Page) First(indent string, lines []string, most, all int, rest string) {
	p.Lines(indent, lines[:min(len(lines), most)])
	if all > most {
		p.Printf("%s... and %d more%s\n", indent, all-most, rest)
	}
}

// Table prints a table: head, which may be nil, and rows.
func (p *Page) Table(head []any, rows ...[]any) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	if head != nil {
		rows = append([][]any{head}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			separator := "\t"
			if i == len(row)-1 {
				separator = "\n"
			}
			fmt.Fprint(t, Cell(fmt.Sprint(cell), 1), separator)
		}
	}
	_ = t.Flush() // as of any print
}

// Changes prints a unified diff of fields, each line behind an indent.
func (p *Page) Changes(indent string, changes []differ.Change) {
	for _, c := range changes {
		path := c.Path.String()
		old, oldIsText := c.Old.(string)
		new, newIsText := c.New.(string)
		if oldIsText && newIsText && strings.HasSuffix(old, "\n") && strings.HasSuffix(new, "\n") {
			old, new = old[:len(old)-1], new[:len(new)-1]
			c.Old, c.New = old, new
		}
		switch {
		case c.Op == differ.Added:
			p.value(Green, indent+"+ ", path, c.New)
		case c.Op == differ.Removed:
			p.value(Red, indent+"- ", path, c.Old)
		case c.Op == differ.Reordered:
			p.Line(Cyan, fmt.Sprintf("%s~ %s: in another order: %s", indent, path, inline(c.New)))
		case c.Redacted && differ.Equal(c.Old, c.New):
			p.Line(Cyan, fmt.Sprintf("%s~ %s%v, but another value", indent, before(path), c.New))
		case oldIsText && newIsText && strings.Contains(old+new, "\n"):
			p.texts(indent, path, old, new)
		case oldIsText != newIsText: // "1" is not 1
			p.Line(Red, indent+"- "+before(path)+inline(c.Old))
			p.Line(Green, indent+"+ "+before(path)+inline(c.New))
		default:
			p.value(Red, indent+"- ", path, c.Old)
			p.value(Green, indent+"+ ", path, c.New)
		}
	}
}

// texts prints how a text of several lines differs.
func (p *Page) texts(indent, path, old, new string) {
	p.Line(Cyan, indent+"@ "+strings.TrimSuffix(before(path), " "))
	for _, l := range differ.Lines(old, new, 2) {
		switch l.Op {
		case '-':
			p.Line(Red, indent+"-   "+l.Text)
		case '+':
			p.Line(Green, indent+"+   "+l.Text)
		case '@':
			p.Line(Cyan, indent+"    ...")
		default:
			p.Line(Plain, indent+"    "+l.Text)
		}
	}
}

// value prints a field and its value: on one line, or as YAML below it.
func (p *Page) value(colour Colour, sign, path string, value any) {
	path = before(path)
	if text, isText := value.(string); isText && !strings.Contains(text, "\n") {
		p.Line(colour, sign+path+text)
		return
	}
	if text := inline(value); len(text) <= 60 {
		p.Line(colour, sign+path+text)
		return
	}
	block, err := YAML(value)
	if err != nil {
		block = []byte(inline(value))
	}
	p.Line(colour, sign+strings.TrimSuffix(path, " "))
	for l := range strings.Lines(string(block)) {
		p.Line(colour, sign+"  "+strings.TrimSuffix(l, "\n"))
	}
}

// before returns a path and a colon; "" for the whole value.
func before(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}
