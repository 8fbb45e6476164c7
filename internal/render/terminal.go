package render

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/transform"
	"golang.org/x/text/width"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	if _, folds := w.(*folder); folds {
		return true
	}
	f, isFile := w.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// Printable returns s for a terminal: quoted if it has unprintable characters.
func Printable(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' { // rare: most text is ASCII
			if strings.ContainsFunc(s[i:], func(r rune) bool {
				return !unicode.IsPrint(r) ||
					r == unicode.ReplacementChar
			}) {
				return strconv.Quote(s)
			}
			return s
		}
	}
	return s
}

// IsText reports whether value is safe on a terminal: printable characters, tabs and line ends.
func IsText(value []byte) bool {
	return utf8.Valid(value) && !strings.ContainsFunc(string(value), func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\n' && r != '\t'
	})
}

// NewEscaper returns a writer of text to w with terminal control characters escaped, such as \x1b.
// Tabs and line ends stay. Close completes the text, and leaves w open.
func NewEscaper(w io.Writer) io.WriteCloser { return transform.NewWriter(w, escaper{}) }

type escaper struct{ transform.NopResetter }

// Transform implements transform.Transformer.
func (escaper) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		text := src[nSrc:]
		if !atEOF && (!utf8.FullRune(text) || len(text) == 1 && text[0] == '\r') {
			return nDst, nSrc, transform.ErrShortSrc
		}
		out, n := escapeFirst(text)
		if nDst+len(out) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst, nSrc = nDst+copy(dst[nDst:], out), nSrc+n
	}
	return nDst, nSrc, nil
}

// escapeFirst returns the first character of text, escaped if needed, and its length in text.
func escapeFirst(text []byte) (out []byte, n int) {
	c := text[0]
	if r, n := controlAt(text); n > 0 && c != 0x7f {
		return fmt.Appendf(nil, `\u%04x`, r), n
	}
	_, n = utf8.DecodeRune(text)
	lineEnd := c == '\n' || c == '\r' && len(text) > 1 && text[1] == '\n'
	if c < ' ' && c != '\t' && !lineEnd || c == 0x7f || n == 1 && c >= 0x80 && c < 0xa0 {
		return fmt.Appendf(nil, `\x%02x`, c), 1
	}
	return text[:n], n
}

// escapeControls escapes, in strings of JSON, control characters that JSON allows and terminals
// obey.
func escapeControls(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		r, n := controlAt(text[i:])
		if n > 0 {
			out = fmt.Appendf(append(out, text[done:i]...), `\u%04x`, r)
			done = i + n
		}
		i += max(n, 1)
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// hasControls reports whether escapeControls would change text: an escape is longer.
func hasControls(text []byte) bool { return len(escapeControls(text)) > len(text) }

// controlAt returns the first character of text and its length if the character is DEL, a control
// character of Latin-1, a line separator, a text direction control, or a noncharacter, which YAML
// refuses; otherwise 0. The first byte usually suffices, which matters for long documents.
func controlAt(text []byte) (rune, int) {
	switch {
	case text[0] == 0x7f:
		return 0x7f, 1
	case text[0] != 0xc2 && text[0] != 0xd8 && text[0] != 0xe2 && text[0] != 0xef:
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r >= 0x80 && r <= 0x9f, r >= 0x2028 && r <= 0x202e, r == 0x61c, r == 0x200e, r == 0x200f,
		r >= 0x2066 && r <= 0x2069, r == 0xfffe, r == 0xffff:
		return r, n
	}
	return 0, 0
}

// columnsOf returns the current width of a terminal; 80 if unknown.
func columnsOf(w io.Writer) int {
	if f, isFile := w.(*os.File); isFile {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// Folding returns a writer that breaks lines longer than w between words, if w is a terminal;
// otherwise w.
func Folding(w io.Writer) io.Writer {
	if !IsTerminal(w) {
		return w
	}
	return &folder{w: w, columns: columnsOf(w)}
}

type folder struct {
	w       io.Writer
	columns int
	line    []byte // the beginning of a line
}

// Write keeps a line until it ends.
func (f *folder) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		if f.line = append(f.line, line...); line[len(line)-1] != '\n' {
			break
		}
		if _, err := io.WriteString(f.w, fold(string(f.line), f.columns)); err != nil {
			return 0, err
		}
		f.line = f.line[:0]
	}
	return len(text), nil
}

// fold breaks a line longer than columns between words. Later lines are indented by two columns
// more than the first. A word that is too long stays whole.
func fold(text string, columns int) string {
	line, indent, out := []rune(text), "", strings.Builder{}
	deeper := strings.Repeat(" ", min(columns/2, 2+len(text)-len(strings.TrimLeft(text, " "))))
	isSpace := func(r rune) bool { return r == ' ' }
	isWord := func(r rune) bool { return r != ' ' }
	for room := columns; len(line) > room+1; room = columns - len(deeper) { // the line has an end
		from := max(0, slices.IndexFunc(line, isWord))
		at := room
		for at > from && line[at] != ' ' {
			at--
		}
		if at == from {
			if at = slices.IndexFunc(line[from:], isSpace) + from; at < from {
				break
			}
		}
		out.WriteString(indent + strings.TrimRight(string(line[:at]), " ") + "\n")
		line = line[at:]
		line = line[max(0, slices.IndexFunc(line, isWord)):]
		indent = deeper
	}
	out.WriteString(indent + string(line))
	return out.String()
}

// fit cuts s to a number of columns; a wide character takes two. A terminal breaks a longer line,
// and cannot clear it.
func fit(s string, columns int) string {
	const cut = "..."
	used, end := 0, 0
	for i, r := range s {
		if used+len(cut) <= columns {
			end = i
		}
		if used++; width.LookupRune(r).Kind() == width.EastAsianWide ||
			width.LookupRune(r).Kind() == width.EastAsianFullwidth {
			used++
		}
		if used > columns {
			return s[:end] + cut[:max(0, min(len(cut), columns))]
		}
	}
	return s
}
