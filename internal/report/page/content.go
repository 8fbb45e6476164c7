package page

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/internal/render"
)

// content is a page without its form.
type content struct {
	Title    string
	Cards    []card
	Sections []section
}

// card is a verdict at the top.
type card struct {
	Name, Value, More string
	Level             level
}

// level colours a verdict.
type level string

const (
	good  level = "good"
	bad   level = "error"
	odd   level = "warning"
	plain level = "info"
)

// section is a heading and what is below it.
type section struct {
	ID, Title string
	Parts     []part
}

// part is one of its fields.
type part struct {
	Lead     string // a sentence of ours
	Data     string // a line from the file
	Facts    []fact
	Table    *table
	Finding  *group
	Chart    []chart // the same in several forms
	Commands []string
	Sign     *signature
}

// fact is a name and values.
type fact struct {
	Name  string
	Cells []cell
}

// table is a table. Others says what was left out.
type table struct {
	Title  string
	Head   []column
	Rows   [][]cell
	Others string
	Stack  bool // one cell below the other on a phone: the last is a verdict
}

type column struct {
	Name         string
	Number, Time bool
}

// cell is a text: ours, or code: a text from a file.
type cell struct {
	Text  string
	Code  bool
	Level level  // of a verdict
	Bar   string // the length of a bar, in percent; "" for none
}

// group are the findings of one code.
type group struct {
	Level, Code, Title, Remedy string
	Count                      int
	Lines                      []line
	Others                     string
}

// line is a finding: a key, and what was found.
type line struct{ Key, Text string }

// signature is the place to sign.
type signature struct {
	Of   string // the digest of the file
	Rows []int
}

// Bounds of a page.
const (
	mostText     = 200 // bytes of a text from a file
	mostLines    = 10  // of a finding
	mostGroups   = 40  // codes, which are ours, with findings
	mostShares   = 15  // rows of a table of sizes
	mostVersions = 400 // rows of stored versions
	mostCommands = 50
)

// data returns a text from a file: printable, and cut with its length if too long.
func data(text string) string {
	n := len(text)
	if n <= mostText {
		return render.Printable(text)
	}
	cut := mostText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return render.Printable(text[:cut]) + fmt.Sprintf(" … (%s bytes)", number(int64(n)))
}

func code(text string) cell { return cell{Text: data(text), Code: text != ""} }
func word(text string) cell { return cell{Text: text} }

func count[N int | int64](n N) cell { return word(number(int64(n))) }

// counts are cells of numbers.
func counts(all ...int) (out []cell) {
	for _, n := range all {
		out = append(out, count(n))
	}
	return out
}

// size is a number of bytes in a binary unit.
func size(n int64) string {
	if n < 1<<10 {
		return render.Plural(int(n), "byte")
	}
	_, short, _ := strings.Cut(strings.TrimSuffix(render.Size(n), ")"), "(")
	return short
}

// number groups the digits of a number.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u2009" + text[i:] // a thin space
	}
	return text
}

// bar is a cell with a part of a whole in percent, and a bar of that length.
func bar(part, whole int64) cell {
	percent := tenths(100 * float64(part) / float64(max(whole, 1)))
	return cell{Text: percent + " %", Bar: percent}
}

// tenths formats a length.
func tenths(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// others says how many of a list were left out.
func others(all, shown int, what string) string {
	if all <= shown {
		return ""
	}
	return fmt.Sprintf("and %s more %s", number(int64(all-shown)), what)
}

// first is the beginning of a list.
func first[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// columns are the heads of a table; those that begin with # are of numbers, with @ of times.
func columns(names ...string) (out []column) {
	for _, name := range names {
		text, isNumber := strings.CutPrefix(name, "#")
		text, isTime := strings.CutPrefix(text, "@")
		out = append(out, column{text, isNumber, isTime})
	}
	return out
}
