package storageversion

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// Definitions is the section of a report with the result for each CustomResourceDefinition, and for
// built-in kinds.
type Definitions struct {
	CustomResources []CustomResource `json:"customResources,omitempty"`
	// objects of built-in kinds at another version than the release stores, by version
	BuiltinKinds []transform.KindCount `json:"builtinKinds,omitempty"`
	HelmReleases []HelmRelease         `json:"helmReleases,omitempty"` // with a changed manifest
}

// HelmRelease is a Helm release whose manifest was changed.
type HelmRelease struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Changes []string `json:"changes"` // "policy/v1beta1 PodDisruptionBudget: policy/v1"
}

// CustomResource is the result for the objects of one CustomResourceDefinition.
type CustomResource struct {
	Prefix         string         `json:"prefix"` // of its storage, "/registry"
	CRD            string         `json:"crd"`    // PLURAL.GROUP
	Chosen         bool           `json:"chosen"` // false: excluded by the options
	StorageVersion string         `json:"storageVersion"`
	Found          map[string]int `json:"found"` // objects by stored version before the run, "" for unknown
	Rewritten      int            `json:"rewritten"`
	Unchanged      int            `json:"unchanged"`
	Refused        int            `json:"refused"`       // unchanged, each with a problem
	ManagedFields  int            `json:"managedFields"` // objects with relabeled managedFields entries
	StoredVersions StoredVersions `json:"storedVersions"`
}

// StoredVersions is status.storedVersions of a CustomResourceDefinition.
type StoredVersions struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
	Kept   string   `json:"kept,omitempty"` // why After has more than the storage version
}

// Tables returns a row for each definition. Definitions without changes are only counted: there may
// be hundreds.
func (d *Definitions) Tables(transform.Outcome) []transform.Table {
	idle, others, rewritten, unchanged, refused := 0, 0, 0, 0, 0
	t := transform.Table{}
	for _, c := range d.CustomResources {
		rewritten += c.Rewritten
		unchanged += c.Unchanged
		refused += c.Refused
		switch stored := c.StoredVersions; {
		case !c.Chosen: // its needs are among the problems
			others++
		case c.Rewritten == 0 && c.Refused == 0 && stored.Kept == "" && slices.Equal(stored.Before, stored.After):
			idle++
		default:
			t.Rows = append(t.Rows, []any{
				c.CRD, listCounts(c.Found), c.StorageVersion, c.Rewritten, c.Unchanged, c.Refused,
				stored.text(), stored.Kept,
			})
		}
	}
	if len(t.Rows) > 0 {
		t.Header = []any{"DEFINITION", "FOUND", "STORAGE", "REWRITTEN", "UNCHANGED", "REFUSED", "STORED VERSIONS", ""}
		t.Totals = [][]any{{"total", "", "", rewritten, unchanged, refused, "", ""}}
	}
	for i, what := range []string{"with nothing to do", "not chosen"} {
		if n := []int{idle, others}[i]; n > 0 {
			t.Notes = append(t.Notes, phrase.Count(n, "definition")+" "+what)
		}
	}
	tables := []transform.Table{t}
	if len(d.BuiltinKinds) > 0 {
		natives := transform.Table{Header: []any{"BUILT-IN KIND", "FROM", "TO", "REWRITTEN", "REFUSED", "DELETED"}}
		for _, n := range d.BuiltinKinds {
			natives.Rows = append(natives.Rows, []any{n.Kind, n.From, n.To, n.Migrated, n.Skipped, n.Deleted})
		}
		tables = append(tables, natives)
	}
	if len(d.HelmReleases) > 0 {
		releases := transform.Table{Header: []any{"HELM RELEASE", "CHANGED"}}
		for _, r := range d.HelmReleases {
			releases.Rows = append(releases.Rows, []any{r.Name, strings.Join(r.Changes, ", ")})
		}
		tables = append(tables, releases)
	}
	return tables
}

// text returns the list before and after the run.
func (v StoredVersions) text() string {
	before, after := strings.Join(v.Before, ","), strings.Join(v.After, ",")
	if before == after {
		return after
	}
	return cmp.Or(before, "none") + " -> " + after
}

// summarize completes the row of the kind, and adds its counts and steps to the report.
func (k *kind) summarize(report *transform.Report, to string) {
	k.row.StorageVersion = k.storageVersion()
	for _, version := range slices.Sorted(maps.Keys(k.row.Found)) {
		n := k.at(version)
		k.row.Rewritten += n.Migrated
		k.row.Unchanged += n.Unchanged
		k.row.Refused += n.Skipped
		if k.row.Chosen && k.crd != nil {
			n.Kind, n.From, n.To = k.crd.GroupKind().Kind, k.apiVersion(version), k.apiVersion(k.row.StorageVersion)
			report.Kinds = append(report.Kinds, *n)
		}
	}
	if k.row.Chosen && k.crd != nil {
		k.steps(report, to)
	}
}

// apiVersion returns GROUP/VERSION; "" for an unknown version.
func (k *kind) apiVersion(version string) string {
	if version == "" {
		return ""
	}
	return gvr.GroupVersion{Group: k.group, Version: version}.String()
}

func (k *kind) steps(report *transform.Report, to string) {
	var idle []string
	served := 0 // versions that are served without the idle ones
	for _, v := range k.crd.Object().Spec.Versions {
		n := k.entries[v.Name]
		switch {
		case v.Name == k.crd.StorageVersion() || slices.Contains(k.row.StoredVersions.After, v.Name):
		case n > 0:
			report.AddStep("nothing is stored at %s of %s any more, but managedFields of %d of its objects name it: "+
				"before it is removed from spec.versions, "+
				"relabel them with --managed-fields all, or every server-side apply of them fails (kubernetes#111937)",
				v.Name, k.row.CRD, n)
		case slices.Contains(k.row.StoredVersions.Before, v.Name):
			idle = append(idle, v.Name)
			continue
		}
		if v.Served {
			served++
		}
	}
	if len(idle) > 0 && served > 0 {
		report.AddStep("nothing is stored at %s of %s any more: it may be removed from spec.versions",
			strings.Join(idle, ", "), k.row.CRD)
	}
	if to == "" || to != k.crd.StorageVersion() {
		return
	}
	report.AddStep("whoever owns %s (Helm, an operator, GitOps) would set its storage version back: have it say "+
		"%s there too", k.row.CRD, to)
	if !k.crd.Served(to) {
		report.AddStep("%s of %s is not served: its objects are read through the versions that are, so keep one", to,
			k.row.CRD)
	}
}
