// Package render prints tables, JSON, JSON lines, YAML, templates, and progress on a terminal. It
// is independent of commands and prints only to given writers.
//
// Invariants:
//
//   - No name, key or value moves a terminal's cursor: text quotes control characters, JSON escapes
//     them.
//   - The output for a hostile object is bounded by a multiple of its size.
//   - A list of any length is printed element by element.
package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/internal/compare"
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

// Line prints a line, quoted if it is not printable. Tabs are allowed.
func (p *Page) Line(colour Colour, text string) {
	if untabbed := strings.ReplaceAll(text, "\t", " "); Printable(untabbed) != untabbed {
		text = Printable(text)
	}
	if p.colour && colour != Plain {
		text = "\x1b[" + string(colour) + "m" + text + "\x1b[m"
	}
	p.WriteString(text + "\n")
}

// Printf quotes unprintable texts and errors among its arguments.
func (p *Page) Printf(format string, args ...any) {
	for i, arg := range args {
		if _, isError := arg.(error); isError || reflect.ValueOf(arg).Kind() == reflect.String {
			args[i] = Printable(fmt.Sprint(arg))
		}
	}
	fmt.Fprintf(p, format, args...)
}

// PageWidth is the width of a page for people, in columns. A longer word stays whole.
const PageWidth = 80

// Wrap breaks a text after a head into lines, indented by the width of the head.
func Wrap(head, text string) string {
	out, line, column := "", head, utf8.RuneCountInString(head)
	width := column
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && width+1+n > PageWidth:
			out += line + "\n"
			line, width = strings.Repeat(" ", column), column
		case i > 0:
			line, width = line+" ", width+1
		}
		line, width = line+word, width+n
	}
	return out + line + "\n"
}

// Wrapped prints a text after a head, wrapped into lines.
func (p *Page) Wrapped(head, text string) { p.WriteString(Wrap(head, Printable(text))) }

// Lines prints each line after an indent.
func (p *Page) Lines(indent string, lines []string) {
	for _, line := range lines {
		p.Printf("%s%s\n", indent, line)
	}
}

// First prints at most most lines, then the number of the others before rest.
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
	_ = t.Flush() // Page.Flush returns the error
}

// Changes prints a unified diff of fields, each line after an indent.
func (p *Page) Changes(indent string, changes []compare.Change) {
	for _, c := range changes {
		path := c.Path.String()
		old, oldIsText := c.Old.(string)
		new, newIsText := c.New.(string)
		if oldIsText && newIsText && strings.HasSuffix(old, "\n") && strings.HasSuffix(new, "\n") {
			old, new = old[:len(old)-1], new[:len(new)-1]
			c.Old, c.New = old, new
		}
		switch {
		case c.Op == compare.Added:
			p.value(Green, indent+"+ ", path, c.New)
		case c.Op == compare.Removed:
			p.value(Red, indent+"- ", path, c.Old)
		case c.Op == compare.Reordered:
			p.Line(Cyan, fmt.Sprintf("%s~ %s: in another order: %s", indent, path, inline(c.New)))
		case c.Redacted && compare.Equal(c.Old, c.New):
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

// texts prints the difference of two multi-line texts.
func (p *Page) texts(indent, path, old, new string) {
	p.Line(Cyan, indent+"@ "+strings.TrimSuffix(before(path), " "))
	for _, l := range compare.Lines(old, new, 2) {
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

// maxCell and maxRow bound the bytes of a cell and a row: all rows are as wide as the longest.
const (
	maxCell = 4096
	maxRow  = 64 << 10
)

// Cell returns s for a table with the number of columns: printable, and cut with "..." if too long.
func Cell(s string, columns int) string {
	if most := min(maxCell, maxRow/columns); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return Printable(s)
}

// Columns returns columns with printable names: a CustomResourceDefinition may use any name.
func Columns(columns []metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	out := slices.Clone(columns)
	for i := range out {
		out[i].Name = Cell(out[i].Name, len(out))
	}
	return out
}

// Size formats a number of bytes, with a binary unit for large numbers.
func Size(bytes int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if bytes < 1<<10 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	n, unit := float64(bytes)/1024, 0
	for n >= 1024 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d bytes (%.1f %s)", bytes, n, units[unit])
}

// Flow prints a table row by row. The first rows set the widths; wider later rows widen them.
type Flow struct {
	w       *bufio.Writer
	widths  []int
	waiting [][]string // rows before the widths are known
	held    int        // waiting bytes
	sized   bool
	spaces  string // of mostWidth and two more
}

const (
	firstRows  = 500     // rows that set the widths
	firstBytes = 1 << 20 // of these rows
	mostWidth  = 100     // of a column, even for a hostile key
)

// NewFlow returns a Flow on w with a first row. On a terminal its lines are broken between words.
func NewFlow(w io.Writer, head ...string) *Flow {
	return &Flow{
		w: bufio.NewWriterSize(Folding(w), 1<<16), widths: make([]int, len(head)), waiting: [][]string{head},
		spaces: strings.Repeat(" ", mostWidth+2),
	}
}

// Row prints a row. An empty cell is shown as "-".
func (f *Flow) Row(cells ...string) error {
	for i, cell := range cells {
		if cells[i] = Printable(cell); cell == "" {
			cells[i] = "-"
		}
		f.held += len(cells[i])
	}
	if f.waiting = append(f.waiting, cells); f.sized || len(f.waiting) > firstRows || f.held > firstBytes {
		return f.print()
	}
	return nil
}

func (f *Flow) print() error {
	f.sized = true
	for _, row := range f.waiting {
		for i, cell := range row {
			f.widths[i] = max(f.widths[i], min(utf8.RuneCountInString(cell), mostWidth))
		}
	}
	for _, row := range f.waiting {
		for i, cell := range row {
			f.w.WriteString(cell)
			if i < len(row)-1 {
				f.w.WriteString(f.spaces[:max(0, f.widths[i]-utf8.RuneCountInString(cell))+2])
			}
		}
		if err := f.w.WriteByte('\n'); err != nil {
			return err
		}
	}
	clear(f.waiting)
	f.waiting = f.waiting[:0]
	return nil
}

// Flush prints the waiting rows.
func (f *Flow) Flush() error {
	if err := f.print(); err != nil {
		return err
	}
	return f.w.Flush()
}

// Rows laid out together in memory. kubectl requests 500 at once, but prints them together.
const (
	chunkRows  = 5000
	chunkBytes = 16 << 20
)

// ObjectTable prints a table of objects by kubectl's printer, chunk by chunk.
type ObjectTable struct {
	columns []metav1.TableColumnDefinition
	printer printers.ResourcePrinter
	out     interface { // kubectl's tab writer
		io.Writer
		Flush() error
	}
	buffer *bufio.Writer // of out, which writes each cell
	rows   []metav1.TableRow
	bytes  int // of texts in rows
}

// NewObjectTable returns a table on w.
func NewObjectTable(w io.Writer, columns []metav1.TableColumnDefinition, o printers.PrintOptions) *ObjectTable {
	return newObjectTable(w, columns, printers.NewTablePrinter(o))
}

func newObjectTable(
	w io.Writer, columns []metav1.TableColumnDefinition, printer printers.ResourcePrinter,
) *ObjectTable {
	buffer := bufio.NewWriterSize(w, 1<<16)
	return &ObjectTable{columns: columns, printer: printer, out: printers.GetNewTabWriter(buffer), buffer: buffer}
}

// NewCustomTable returns a table of texts in kubectl's columns on w.
func NewCustomTable(w io.Writer) *ObjectTable {
	printer := printers.ResourcePrinterFunc(func(table runtime.Object, w io.Writer) error {
		for _, row := range table.(*metav1.Table).Rows {
			fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%s\t", len(row.Cells)), row.Cells...), "\t"))
		}
		return nil
	})
	return newObjectTable(w, nil, printer)
}

// Row adds a row, and prints the collected rows when a chunk is complete.
func (t *ObjectTable) Row(cells []any) error {
	t.rows = append(t.rows, metav1.TableRow{Cells: cells})
	for _, cell := range cells {
		text, _ := cell.(string)
		t.bytes += len(text)
	}
	if len(t.rows) < chunkRows && t.bytes < chunkBytes {
		return nil
	}
	return t.Flush()
}

// Flush prints the collected rows.
func (t *ObjectTable) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	err := t.printer.PrintObj(&metav1.Table{ColumnDefinitions: t.columns, Rows: t.rows}, t.out)
	clear(t.rows) // free their cells
	t.rows, t.bytes = t.rows[:0], 0
	if err == nil {
		err = t.out.Flush()
	}
	return cmp.Or(err, t.buffer.Flush())
}
