package report

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
)

//go:embed page.html sections.html page.css
var files embed.FS

// Page is a report with the program version.
type Page struct {
	*Report
	Path    string // path of the snapshot, as given
	Version string
}

// HTML writes the page as one file.
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

// span is a part of one of this program's texts.
type span struct {
	Text string
	Code bool
}

// ticks splits a text at backticks, which enclose code.
func ticks(text string) (out []span) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			out = append(out, span{part, i%2 == 1})
		}
	}
	return out
}

// pieces splits a key or a name at possible line breaks: after a slash or a dot.
func pieces(text string) []string {
	return strings.Split(strings.NewReplacer("/", "/\x00", ".", ".\x00").Replace(text), "\x00")
}
