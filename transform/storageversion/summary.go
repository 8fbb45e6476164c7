package storageversion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/transform"
)

// Definitions is the section of a report with what became of each CustomResourceDefinition.
type Definitions struct {
	CustomResources []CustomResource `json:"customResources,omitempty"`
}

// CustomResource is what became of the objects of one CustomResourceDefinition.
type CustomResource struct {
	Prefix         string         `json:"prefix"` // of the storage that it lies in, "/registry"
	CRD            string         `json:"crd"`    // PLURAL.GROUP
	Chosen         bool           `json:"chosen"` // false: the options left it out
	StorageVersion string         `json:"storageVersion"`
	Found          map[string]int `json:"found"` // objects by the version they were stored at, "" where nobody can tell
	Rewritten      int            `json:"rewritten"`
	Unchanged      int            `json:"unchanged"`
	Refused        int            `json:"refused"`       // left as they are, each with a problem
	ManagedFields  int            `json:"managedFields"` // objects with managedFields entries that were relabelled
	StoredVersions StoredVersions `json:"storedVersions"`
}

// StoredVersions is status.storedVersions of a CustomResourceDefinition.
type StoredVersions struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
	Kept   string   `json:"kept,omitempty"` // why After holds more than the storage version
}

// Tables has a row for each definition. Those with nothing to do are counted: there may be hundreds.
func (d *Definitions) Tables(transform.Outcome) []transform.Table {
	idle, others, rewritten, unchanged, refused := 0, 0, 0, 0, 0
	t := transform.Table{}
	for _, c := range d.CustomResources {
		rewritten += c.Rewritten
		unchanged += c.Unchanged
		refused += c.Refused
		switch stored := c.StoredVersions; {
		case !c.Chosen: // what it would have needed is among the problems
			others++
		case c.Rewritten == 0 && c.Refused == 0 && stored.Kept == "" && slices.Equal(stored.Before, stored.After):
			idle++
		default:
			t.Rows = append(t.Rows, []any{
				c.CRD, countVersions(c.Found), c.StorageVersion, c.Rewritten, c.Unchanged, c.Refused, stored.text(), stored.Kept,
			})
		}
	}
	if len(t.Rows) > 0 {
		t.Header = []any{"DEFINITION", "FOUND", "STORAGE", "REWRITTEN", "UNCHANGED", "REFUSED", "STORED VERSIONS", ""}
		t.Totals = [][]any{{"total", "", "", rewritten, unchanged, refused, "", ""}}
	}
	if idle > 0 {
		t.Notes = append(t.Notes, countDefinitions(idle)+" with nothing to do")
	}
	if others > 0 {
		t.Notes = append(t.Notes, countDefinitions(others)+" not chosen")
	}
	return []transform.Table{t}
}

func countDefinitions(n int) string {
	if n == 1 {
		return "1 definition"
	}
	return fmt.Sprintf("%d definitions", n)
}

// countVersions is how many objects were found at each version.
func countVersions(found map[string]int) string {
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(found)) {
		name := version
		if name == "" {
			name = "unreadable"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, found[version]))
	}
	return strings.Join(parts, ", ")
}

// text shows the list, and what it becomes.
func (v StoredVersions) text() string {
	before, after := strings.Join(v.Before, ","), strings.Join(v.After, ",")
	if before == after {
		return after
	}
	if before == "" {
		before = "none"
	}
	return before + " -> " + after
}

// summarize writes what became of the kinds into the report.
func (r *run) summarize(d *Definitions) {
	report := r.view.Report()
	for _, k := range r.kinds {
		d.CustomResources = append(d.CustomResources, CustomResource{
			Prefix: r.keys.Prefix, CRD: k.name, Chosen: k.chosen, StorageVersion: k.storageVersion(), Found: k.found,
			Rewritten: total(k.rewritten), Unchanged: total(k.unchanged), Refused: total(k.refused), ManagedFields: k.managedFields,
			StoredVersions: StoredVersions{Before: notNil(k.before), After: notNil(k.after), Kept: k.kept},
		})
		if !k.chosen || k.crd == nil {
			continue
		}
		k.steps(report, r.opts.To)
		for _, version := range slices.Sorted(maps.Keys(k.found)) {
			from := ""
			if version != "" { // else nobody can tell
				from = gvr.GroupVersion{Group: k.group, Version: version}.String()
			}
			report.Kinds = append(report.Kinds, transform.KindCount{
				Kind: k.crd.GroupKind().Kind, From: from, To: k.storage(),
				Migrated: k.rewritten[version], Unchanged: k.unchanged[version], Skipped: k.refused[version],
			})
		}
	}
}

// steps lists what is left to do by hand.
func (k *kind) steps(report *transform.Report, to string) {
	var idle []string
	served := 0 // versions that are, and must be when the idle ones are gone
	for _, v := range k.crd.Object().Spec.Versions {
		n := k.entries[v.Name]
		switch {
		case v.Name == k.crd.StorageVersion() || slices.Contains(k.after, v.Name):
		case n > 0:
			report.AddStep("nothing is stored at %s of %s any more, but managedFields of %d of its objects name it: before it is removed from spec.versions, relabel them with --managed-fields all, "+
				"or every server-side apply of them fails (kubernetes#111937)", v.Name, k.name, n)
		case slices.Contains(k.before, v.Name):
			idle = append(idle, v.Name)
			continue
		}
		if v.Served {
			served++
		}
	}
	if len(idle) > 0 && served > 0 {
		report.AddStep("nothing is stored at %s of %s any more: it may be removed from spec.versions", strings.Join(idle, ", "), k.name)
	}
	if to == "" || to != k.crd.StorageVersion() {
		return
	}
	report.AddStep("whoever owns %s (Helm, an operator, GitOps) would set its storage version back: have it say %s there too", k.name, to)
	if !k.crd.Served(to) {
		report.AddStep("%s of %s is not served: its objects are read through the versions that are, so keep one", to, k.name)
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
