// Package docs embeds the pages of this folder, so that the program prints them offline.
package docs

import (
	"embed"
	"path"
	"strings"
)

//go:embed guides/*.md reference/*.md project/*.md
var files embed.FS

// Pages returns the names of all pages, such as "guides/calico-v3.md": guides, reference, project.
func Pages() (names []string) {
	for _, folder := range []string{"guides", "reference", "project"} {
		entries, _ := files.ReadDir(folder) // embedded: no error
		for _, entry := range entries {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names
}

// Page returns the text of a page by name, with or without folders and ".md"; false for an unknown
// page.
func Page(name string) (text string, is bool) {
	base := strings.TrimSuffix(path.Base(name), ".md") + ".md"
	for _, page := range Pages() {
		if path.Base(page) == base {
			text, err := files.ReadFile(page)
			return string(text), err == nil
		}
	}
	return "", false
}
