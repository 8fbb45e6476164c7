package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/etcdshift/etcdshift/internal/differ"
)

// showSecretsFlag is on every command that prints values.
func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "show-secrets", Usage: "print Secrets and other credentials as they are; without it they are \"<redacted 32 bytes>\""}
}

// page prints text for people, in colour on a terminal. Control characters never get there.
type page struct {
	w      *bufio.Writer
	colour bool
}

func newPage(w io.Writer) *page {
	f, isFile := w.(*os.File)
	return &page{bufio.NewWriter(w), isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// The colours of a terminal (ECMA-48, SGR).
const (
	plain = ""
	bold  = "1"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// line prints a line; what is not printable in it is quoted, and a tab stays one.
func (p *page) line(colour, text string) {
	if untabbed := strings.ReplaceAll(text, "\t", " "); printable(untabbed) != untabbed {
		text = printable(text)
	}
	if p.colour && colour != plain {
		text = "\x1b[" + colour + "m" + text + "\x1b[m"
	}
	p.w.WriteString(text + "\n")
}

// flush ends the page; its error is that of any line.
func (p *page) flush() error { return p.w.Flush() }

// changes prints what differs as a unified diff of fields, each line with indent before it.
func (p *page) changes(indent string, changes []differ.Change) {
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
			p.value(green, indent+"+ ", path, c.New)
		case c.Op == differ.Removed:
			p.value(red, indent+"- ", path, c.Old)
		case c.Op == differ.Reordered:
			p.line(cyan, fmt.Sprintf("%s~ %s: in another order: %s", indent, path, oneLine(c.New)))
		case c.Redacted && differ.Equal(c.Old, c.New):
			p.line(cyan, fmt.Sprintf("%s~ %s%v, but another value", indent, before(path), c.New))
		case oldIsText && newIsText && strings.Contains(old+new, "\n"):
			p.texts(indent, path, old, new)
		case oldIsText != newIsText: // "1" is not 1
			p.line(red, indent+"- "+before(path)+oneLine(c.Old))
			p.line(green, indent+"+ "+before(path)+oneLine(c.New))
		default:
			p.value(red, indent+"- ", path, c.Old)
			p.value(green, indent+"+ ", path, c.New)
		}
	}
}

// texts prints how a text of several lines differs.
func (p *page) texts(indent, path, old, new string) {
	p.line(cyan, indent+"@ "+strings.TrimSuffix(before(path), " "))
	for _, l := range differ.Lines(old, new, 2) {
		switch l.Op {
		case '-':
			p.line(red, indent+"-   "+l.Text)
		case '+':
			p.line(green, indent+"+   "+l.Text)
		case '@':
			p.line(cyan, indent+"    ...")
		default:
			p.line(plain, indent+"    "+l.Text)
		}
	}
}

// value prints a field and its value: on one line, or as YAML below it.
func (p *page) value(colour, sign, path string, value any) {
	path = before(path)
	if text, isText := value.(string); isText && !strings.Contains(text, "\n") {
		p.line(colour, sign+path+text)
		return
	}
	if text := oneLine(value); len(text) <= 60 {
		p.line(colour, sign+path+text)
		return
	}
	block, err := objectYAML(value)
	if err != nil {
		block = []byte(oneLine(value))
	}
	p.line(colour, sign+strings.TrimSuffix(path, " "))
	for l := range strings.Lines(string(block)) {
		p.line(colour, sign+"  "+strings.TrimSuffix(l, "\n"))
	}
}

// before is a path as it stands before its value; that of the whole is none.
func before(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// oneLine is a value as JSON.
func oneLine(value any) string {
	text, err := encodeJSON(value, "", "")
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(string(text), "\n")
}
