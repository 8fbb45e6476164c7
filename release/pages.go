package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// writePages stages the manual, completion, and the guide as HTML and as manual pages.
func (r *release) writePages(ctx context.Context) error {
	for name, args := range map[string][]string{
		"man/etcdshift.1":           {"man"},
		"completion/etcdshift.bash": {"completion", "bash"},
		"completion/_etcdshift":     {"completion", "zsh"},
		"completion/etcdshift.fish": {"completion", "fish"},
	} {
		out, err := r.ask(ctx, args...)
		if err != nil {
			return err
		}
		if err := r.stage(name, []byte(out)); err != nil {
			return err
		}
	}
	pages, err := filepath.Glob(filepath.Join(r.root, "docs", "*", "*.md"))
	if err != nil {
		return err
	}
	for _, path := range append(pages, filepath.Join(r.root, "README.md")) {
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := r.writePage(strings.TrimSuffix(filepath.Base(path), ".md"), page); err != nil {
			return err
		}
	}
	schemas, err := filesUnder(filepath.Join(r.root, "docs", "reference", "schema"), "html/schema")
	for _, f := range schemas {
		if err == nil {
			err = create(r.staged(f.name), func(w io.Writer) error { return copyFile(w, f.path) })
		}
	}
	return err
}

func (r *release) stage(name string, data []byte) error {
	return create(r.staged(name), func(w io.Writer) error { _, err := w.Write(data); return err })
}

// writePage stages a page: docs/guides/restore.md becomes html/restore.html and
// etcdshift-restore(7), README.md html/index.html and etcdshift(7).
func (r *release) writePage(name string, page []byte) error {
	manual := "etcdshift-" + name
	if name == "README" {
		name, manual = "index", "etcdshift"
	}
	title, body, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
	web, err := asHTML(title, page)
	if err != nil {
		return err
	}
	if err := r.stage("html/"+name+".html", web); err != nil {
		return err
	}
	if title == manual {
		title = summary
	}
	head := fmt.Sprintf("%% %q 7 %q %q\n# NAME\n%s \\- %s\n\n# DESCRIPTION\n", manual, r.date.Format("2006-01-02"), r.version, manual, title)
	return r.stage("man/"+manual+".7", manualLayout(md2man.Render([]byte(head+manualLists(manualLinks(body))))))
}

const style = `body{max-width:60em;margin:2em auto;padding:0 1em;font:16px/1.5 sans-serif}table{border-collapse:collapse}
td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left;vertical-align:top}pre{background:#f3f3f3;padding:.6em;overflow:auto}`

func asHTML(title string, page []byte) ([]byte, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(page))
	if err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, is := n.(*ast.Link); is && entering {
			link.Destination = []byte(pageLink(string(link.Destination)))
		}
		return ast.WalkContinue, nil
	}); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")
	fmt.Fprintf(&b, "<title>%s</title><style>%s</style></head><body>\n", html.EscapeString(title), style)
	if err := md.Renderer().Render(&b, page, doc); err != nil {
		return nil, err
	}
	b.WriteString("</body></html>\n")
	return b.Bytes(), nil
}

// pageLink is a link between pages of the clone as one between files of html/.
func pageLink(to string) string {
	if strings.Contains(to, "://") {
		return to
	}
	page, anchor, has := strings.Cut(to, "#")
	if base, is := strings.CutSuffix(path.Base(page), ".md"); is {
		page = base + ".html"
		if base == "README" {
			page = "index.html"
		}
	}
	if has {
		page += "#" + anchor
	}
	return page
}

var pageReference = regexp.MustCompile(`\[([^]]*)\]\((?:[a-z./]+/)?([a-z0-9-]+)\.md(?:#[^)]*)?\)`)

// manualLinks: a manual page is found by its name, not by a link.
func manualLinks(page string) string {
	return pageReference.ReplaceAllStringFunc(page, func(link string) string {
		parts := pageReference.FindStringSubmatch(link)
		manual := "**etcdshift-" + parts[2] + "**(7)"
		if strings.HasSuffix(parts[1], ".md") {
			return manual
		}
		return parts[1] + " (" + manual + ")"
	})
}

var listItem = regexp.MustCompile(`^(?:\d+\.|-) `)

// manualLists indents what belongs to an item of a list by four spaces, however wide its number is:
// md2man takes less for a new paragraph, which ends the list.
func manualLists(page string) string {
	var b strings.Builder
	width := 0 // of the number of the item that the line is in, 0 for none
	for line := range strings.Lines(page) {
		text := strings.TrimLeft(line, " ")
		switch indent := len(line) - len(text); {
		case listItem.MatchString(line):
			width = len(listItem.FindString(line))
		case width > 0 && indent >= width:
			line = strings.Repeat(" ", indent-width+4) + text
		case text != "\n":
			width = 0
		}
		b.WriteString(line)
	}
	return b.String()
}
