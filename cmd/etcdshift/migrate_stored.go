package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// printStoredVersions prints, for each CustomResourceDefinition, what became of its objects and of status.storedVersions.
// Those with nothing to do are counted: there may be hundreds.
func printStoredVersions(w io.Writer, r *transform.Report) {
	if len(r.CustomResources) == 0 {
		return
	}
	idle, others, rewritten, unchanged, refused := 0, 0, 0, 0, 0
	t := render.NewTable(w)
	t.Row("DEFINITION", "FOUND", "STORAGE", "REWRITTEN", "UNCHANGED", "REFUSED", "STORED VERSIONS", "")
	for _, c := range r.CustomResources {
		rewritten += c.Rewritten
		unchanged += c.Unchanged
		refused += c.Refused
		note := c.StoredVersions.Kept
		switch {
		case !c.Chosen: // what it would have needed is among the problems
			others++
			continue
		case c.Rewritten == 0 && c.Refused == 0 && note == "" && slices.Equal(c.StoredVersions.Before, c.StoredVersions.After):
			idle++
			continue
		}
		t.Row(c.CRD, found(c.Found), c.StorageVersion, c.Rewritten, c.Unchanged, c.Refused, storedVersions(c.StoredVersions), note)
	}
	fmt.Fprintln(w)
	if idle+others < len(r.CustomResources) {
		t.Row("total", "", "", rewritten, unchanged, refused, "", "")
		t.Flush()
	}
	if idle > 0 {
		fmt.Fprintf(w, "%s with nothing to do\n", render.Plural(idle, "definition"))
	}
	if others > 0 {
		fmt.Fprintf(w, "%s not chosen\n", render.Plural(others, "definition"))
	}
}

// found is how many objects were found at each version.
func found(versions map[string]int) string {
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		name := version
		if name == "" {
			name = "unreadable"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, versions[version]))
	}
	return strings.Join(parts, ", ")
}

// storedVersions shows a list, and what it becomes.
func storedVersions(v transform.StoredVersions) string {
	before, after := strings.Join(v.Before, ","), strings.Join(v.After, ",")
	if before == after {
		return after
	}
	if before == "" {
		before = "none"
	}
	return before + " -> " + after
}
