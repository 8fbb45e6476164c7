package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every item of a list in the guide is one in its manual page.
func TestListsOfManualPages(t *testing.T) {
	r := &release{root: "..", out: t.TempDir(), version: "v0.9.8"}
	pages, err := filepath.Glob("../docs/*.md")
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
		prose := code.ReplaceAllString(string(page), "")
		if got, want := strings.Count(string(made), ".IP \"  "), len(number.FindAllString(prose, -1)); got != want {
			t.Errorf("%s: %d numbered items, want %d", name, got, want)
		}
		if got, want := strings.Count(string(made), `.IP \(bu`), len(mark.FindAllString(prose, -1)); got != want {
			t.Errorf("%s: %d items without a number, want %d", name, got, want)
		}
	}
}

func TestManualLinks(t *testing.T) {
	got := manualLinks(`See [restore.md](restore.md), its ["Before"](docs/restore.md#before) and [x](https://x.example).`)
	want := `See **etcdshift-restore**(7), its "Before" (**etcdshift-restore**(7)) and [x](https://x.example).`
	if got != want {
		t.Error(got)
	}
}
