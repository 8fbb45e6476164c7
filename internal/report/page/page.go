// Package page makes one HTML file of a report, by the templates page.html and sections.html.
// Texts from a snapshot are hostile.
//
// Invariants:
//
//   - The HTML asks for nothing from outside and runs nothing: no script, no style attribute. Its
//     policy allows one style sheet, by its hash.
//   - A text from a snapshot is text: html/template escapes it. Control characters, and those that
//     turn the direction of text, are visible.
//   - Long texts and long lists are cut, and what was left out is said.
//   - The same report gives the same bytes.
package page

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"path/filepath"
	"strings"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/report"
)

//go:embed page.html sections.html page.css
var files embed.FS

// Page is a report and the version of the program that made it.
type Page struct {
	*report.Report
	Path    string // of the snapshot, as it was given
	Version string
}

// HTML writes the page in one file.
func (p Page) HTML(w io.Writer) error {
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	css := strings.TrimSpace(string(style))
	sum := sha256.Sum256([]byte(css))
	t, err := template.New("page.html").Funcs(functions()).ParseFS(files, "page.html", "sections.html")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	err = t.Execute(out, struct {
		Page
		Title, Tool, Policy string
		Style               template.CSS
	}{
		p, data(filepath.Base(p.Path)), "etcdshift " + p.Version,
		"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'",
		template.CSS(css),
	})
	return cmp.Or(err, out.Flush())
}

func functions() template.FuncMap {
	return template.FuncMap{
		"at": at, "charts": charts, "command": command, "data": data, "different": different, "first": first,
		"join": strings.Join,
		"head": head, "number": number, "others": others, "outcome": outcome, "percent": percent, "periods": periods,
		"pieces": pieces,
		"plural": phrase.Count, "size": size, "source": source, "stack": stack, "ticks": ticks, "width": width,
	}
}

// span is a part of a text of ours.
type span struct {
	Text string
	Code bool
}

// ticks splits a text at its backticks, which enclose code.
func ticks(text string) (out []span) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			out = append(out, span{part, i%2 == 1})
		}
	}
	return out
}

// pieces splits a key or a name where a line may end: behind a slash or a dot.
func pieces(text string) []string {
	return strings.Split(strings.NewReplacer("/", "/\x00", ".", ".\x00").Replace(text), "\x00")
}
