package report

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// Limits of a page. sections.html has the limits of other lists.
const (
	mostText     = 200  // bytes of a text from the file
	mostCommand  = 4096 // bytes of a copyable command
	mostLines    = 10   // per finding
	mostGroups   = 40   // codes with findings; codes come from this program
	mostVersions = 400  // rows of stored versions
)

// data returns a text from a file as printable text; a long text is cut, with its length.
func data(value any) string {
	text := fmt.Sprint(value)
	n := len(text)
	if n <= mostText {
		return render.Printable(text)
	}
	cut := mostText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return render.Printable(text[:cut]) + fmt.Sprintf(" … (%s bytes)", number(n))
}

// command is data with a higher limit, for copyable text.
func command(text string) string {
	if len(text) > mostCommand {
		return data(text)
	}
	return render.Printable(text)
}

// size formats a number of bytes in a binary unit.
func size(n int64) string {
	if n < 1<<10 {
		return phrase.Count(int(n), "byte")
	}
	_, short, _ := strings.Cut(strings.TrimSuffix(render.Size(n), ")"), "(")
	return short
}

// number groups the digits of an integer.
func number(n any) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u2009" + text[i:] // a thin space
	}
	return text
}

// percent returns the percentage of a part, which is also the length of its bar.
func percent(part, whole int64) string { return tenths(100 * float64(part) / float64(max(whole, 1))) }

func tenths(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// at formats a time; a zero time is a dash.
func at(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Format(time.RFC3339)
}

// others returns the number of omitted list entries as text.
func others(all, shown int, what string) string {
	if all <= shown {
		return ""
	}
	return fmt.Sprintf("and %s more %s", number(all-shown), what)
}

// first returns the beginning of a list.
func first(list any, most int) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), most)).Interface()
}

// tableHead is the title of a table, with its columns.
type tableHead struct {
	Title   string
	Columns []column
	Stack   bool // stack cells on a phone: the last cell is a verdict
}

type column struct {
	Name   string
	Number bool
}

// head returns the head of a table; names beginning with # are numeric columns.
func head(title string, names ...string) tableHead {
	out := tableHead{Title: title}
	for _, name := range names {
		text, isNumber := strings.CutPrefix(name, "#")
		out.Columns = append(out.Columns, column{text, isNumber})
	}
	return out
}

func stack(title string, names ...string) tableHead {
	out := head(title, names...)
	out.Stack = true
	return out
}

// Image returns the size of the database.
func (p Page) Image() int64 { return int64(p.Status.Pages) * int64(p.Status.PageSize) }

type group struct {
	Level, Code, Title, Remedy string
	Count                      int
	Lines                      []line
	Others                     string
}

// line is a finding: a key and its text.
type line struct{ Key, Text string }

// Diagnosed returns the findings of doctor, grouped by code.
func (p Page) Diagnosed() (groups []*group) {
	var last *group
	for _, f := range p.Diagnosis.Findings {
		if last == nil || last.Code != f.Code.Name || last.Level != string(f.Level) {
			last = &group{Level: string(f.Level), Code: f.Code.Name, Title: f.Code.Title, Remedy: f.Remedy,
				Count: p.Diagnosis.Counts[f.Code]}
			last.Others = others(last.Count, mostLines, "of "+last.Code+"; doctor -o json has them")
			groups = append(groups, last)
		}
		if len(last.Lines) < mostLines {
			last.Lines = append(last.Lines, line{data(f.Key), data(f.Message)})
		}
	}
	return groups
}

// versions are the versions of stored objects.
type versions struct {
	Needs, Rest []version // versions that need attention, and the others
	Others      string
	Empty       int // definitions without objects
	Lists       []string
}

type version struct {
	Resource, At    string
	Objects         int
	Storage, Stored string
	Verdict, Level  string
}

// Versions returns the stored versions.
func (p Page) Versions() (out versions) {
	all := 0
	for _, r := range p.Status.Resources {
		out.Lists = append(out.Lists, Lists(r)...)
		if len(r.Versions) == 0 {
			out.Empty++
		}
		for _, v := range r.Versions {
			to, row := &out.Rest, p.version(r, v)
			if row.Verdict != "" {
				to = &out.Needs
			}
			if all++; len(*to) < mostVersions {
				*to = append(*to, row)
			}
		}
	}
	out.Others = others(all, len(out.Needs)+len(out.Rest), "versions; status -o json lists them all")
	return out
}

func (p Page) version(r inspect.Resource, v inspect.Version) version {
	row := version{Resource: r.Resource, At: v.APIVersion, Objects: v.Objects, Verdict: Verdict(r, v),
		Level: "error"}
	if v.Standing == inspect.Stale {
		row.Level = "warning"
	}
	if len(p.Status.Prefixes) > 1 {
		row.Resource = r.Prefix + "/ " + r.Resource
	}
	if d := r.Definition; d != nil {
		row.Storage, row.Stored = d.StorageVersion, strings.Join(d.StoredVersions, ", ")
	} else {
		row.At = strings.TrimSpace(row.At + " " + v.Kind)
	}
	if keys := Encrypted(v); keys != "" {
		row.At = strings.TrimSpace(row.At + " encrypted by " + keys)
	}
	return row
}

// share is a table of file parts by size.
type share struct {
	Column, By, None string
	Shares           []inspect.Share
	History          bool
	Live             int64 // total
}

// Shares returns the tables of file parts by size.
func (p Page) Shares() []share {
	s := p.Sizes
	out := []share{
		{Column: "Resource", None: "(none)", Shares: s.Resources, History: true},
		{Column: "Namespace", None: "(cluster-scoped)", Shares: s.Namespaces, History: true},
		{Column: "Owner", None: "(no owner)", Shares: s.Owners}, {Column: "Field", None: "(none)", Shares: s.Fields},
	}
	for i := range out {
		out[i].By = strings.ToLower(out[i].Column)
		for _, one := range out[i].Shares {
			out[i].Live += one.Live
		}
	}
	return out
}

// named is a different object, or the number of omitted objects of a resource.
type named struct{ Op, Text string }

func different(d *Difference) (rows []named) {
	left, found := map[string]int{}, map[string]int{}
	for _, o := range d.Objects {
		left[o.Resource]++
	}
	for _, c := range d.Summary {
		found[c.Resource] = c.Found()
	}
	for _, o := range d.Objects {
		rows = append(rows, named{string(o.Op), o.Subject.String()})
		if left[o.Resource]--; left[o.Resource] > 0 {
			continue
		}
		all := found[o.Resource]
		if more := others(all, Most, "of "+data(cmp.Or(o.Resource, "(no resource)"))); more != "" {
			rows = append(rows, named{"…", more})
		}
	}
	return rows
}

// outcome returns a known outcome; the file may contain any text.
func outcome(o transform.Outcome) string {
	switch o {
	case transform.Written, transform.Unchanged, transform.Planned, transform.Refused, transform.Failed:
		return string(o)
	}
	return "unknown"
}

// migration groups the problems of a migration by code, in report order.
type migration struct {
	*Migration
	Errors, Warnings int
	Groups           []*group
	Rest             string
}

// Migrated returns the report of a migration, or nil.
func (p Page) Migrated() *migration {
	if p.Report.Migration == nil {
		return nil
	}
	m, groups, shown := &migration{Migration: p.Report.Migration}, map[string]*group{}, 0
	for _, f := range m.Problems {
		if f.Level == finding.Error {
			m.Errors++
		} else {
			m.Warnings++
		}
		name := string(f.Level) + " " + f.Code.Name
		if groups[name] == nil && len(groups) < mostGroups {
			groups[name] = &group{Level: data(f.Level), Code: data(f.Code.Name)}
			m.Groups = append(m.Groups, groups[name])
		}
		g := groups[name]
		if g == nil {
			continue
		}
		shown++
		if g.Count++; g.Count <= mostLines {
			g.Lines = append(g.Lines, line{data(f.Key), data(f.Reason + decision(f))})
		}
		g.Others = others(g.Count, mostLines, "of this code")
	}
	m.Rest = others(len(m.Problems), shown, "problems of other codes")
	return m
}

func decision(f finding.Finding) string {
	if f.Outcome != "" && f.Outcome != finding.Noted {
		return " [" + string(f.Outcome) + "]"
	}
	return ""
}

// Gravity returns the color class of the verdict.
func (m *migration) Gravity() string {
	switch {
	case m.Fits == FitsNot, m.Outcome == transform.Refused, m.Outcome == transform.Failed, m.Errors > 0:
		return "error"
	case m.Warnings > 0:
		return "warning"
	}
	return "good"
}
