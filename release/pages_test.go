package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every item of a list in the guide is one in its manual page, and its tables fit a terminal.
func TestManualPages(t *testing.T) {
	r := &release{root: "..", out: t.TempDir(), version: "v0.9.8"}
	pages, err := filepath.Glob("../docs/*/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatal(pages, err)
	}
	code := regexp.MustCompile("(?ms)^```.*?^```$")
	number, mark := regexp.MustCompile(`(?m)^\d+\. `), regexp.MustCompile(`(?m)^ {0,3}- `)
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		if err := r.writePage(name, page); err != nil {
			t.Fatal(err)
		}
		made, err := os.ReadFile(r.staged("man/etcdshift-" + name + ".7"))
		if err != nil {
			t.Fatal(err)
		}
		for _, wide := range tooWide(t, string(made)) {
			t.Errorf("%s: a table is %d wide", name, wide)
		}
		prose := code.ReplaceAllString(string(page), "")
		if got, want := strings.Count(string(made), ".IP \"  "), len(number.FindAllString(prose, -1)); got != want {
			t.Errorf("%s: %d numbered items, want %d", name, got, want)
		}
		if got, want := strings.Count(string(made), `.IP \(bu`), len(mark.FindAllString(prose, -1)); got != want {
			t.Errorf("%s: %d items without a number, want %d", name, got, want)
		}
	}
}

// tooWide are the widths of tables that are far wider than a terminal. Some have longer words.
func tooWide(t *testing.T, page string) (wide []int) {
	for _, table := range regexp.MustCompile(`(?s)\.TS\nallbox;\n(.*?) \.\n(.*?)\.TE\n`).FindAllStringSubmatch(page, -1) {
		columns := strings.Fields(table[1])
		width := 1
		for _, column := range columns {
			n := 0
			if _, err := fmt.Sscanf(column, "lw(%dn)", &n); err != nil {
				t.Error(column, err)
			}
			width += n + 3
		}
		if width > tableWidth+15 {
			wide = append(wide, width)
		}
		if cells, rows := strings.Count(table[2], "T{\n"), strings.Count(table[2], "T}\n"); cells != rows*len(columns) {
			t.Errorf("%d cells in %d rows of %d", cells, rows, len(columns))
		}
	}
	return wide
}

func TestColumnWidths(t *testing.T) {
	rows := rowsOf("\\fBcommand\\fP\twhat\nT{\n\\fBfleet list\\fR\nT}\tT{\n" + strings.Repeat("word ", 30) + "crd.projectcalico.org/v1\nT}\n")
	if got := columnWidths(rows); !slices.Equal(got, []int{10, tableWidth - 7 - 10}) {
		t.Error(got)
	}
	if got := rows[1][1]; !strings.HasSuffix(got, ` crd.\:projectcalico.\:org/\:v1`) {
		t.Error(got)
	}
	if got := columnWidths(rowsOf("one\tcrd.projectcalico.org/v1\n")); !slices.Equal(got, []int{3, 24}) {
		t.Error(got)
	}
}

func TestManualLinks(t *testing.T) {
	got := manualLinks(`See [restore.md](restore.md), its ["Before"](docs/guides/restore.md#before) and [x](https://x.example).`)
	want := `See **etcdshift-restore**(7), its "Before" (**etcdshift-restore**(7)) and [x](https://x.example).`
	if got != want {
		t.Error(got)
	}
}
