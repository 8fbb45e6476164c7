// Package docs holds the pages of this folder, for the program to print without a network.
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
		entries, _ := files.ReadDir(folder) // it is embedded
		for _, entry := range entries {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names
}

// Page returns the text of a page by its name, with or without folders and ".md". It is false where
// there is no such page.
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
