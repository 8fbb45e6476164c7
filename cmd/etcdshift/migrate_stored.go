package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// printStoredVersions prints, for each CustomResourceDefinition, what became of status.storedVersions.
func printStoredVersions(w io.Writer, r *transform.Report) {
	if len(r.CustomResources) == 0 {
		return
	}
	idle := 0
	fmt.Fprintln(w)
	t := newTable(w)
	t.row("DEFINITION", "STORAGE", "REWRITTEN", "UNCHANGED", "REFUSED", "STORED VERSIONS", "")
	for _, c := range r.CustomResources {
		note := c.StoredVersions.Kept
		switch {
		case !c.Chosen:
			note = "not chosen"
		case c.Rewritten == 0 && c.Refused == 0 && note == "" && slices.Equal(c.StoredVersions.Before, c.StoredVersions.After):
			idle++
			continue
		}
		t.row(c.CRD, c.StorageVersion, c.Rewritten, c.Unchanged, c.Refused, storedVersions(c.StoredVersions), note)
	}
	t.flush()
	if idle > 0 {
		fmt.Fprintf(w, "%s as they should be, with all their objects\n", plural(idle, "definition"))
	}
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
