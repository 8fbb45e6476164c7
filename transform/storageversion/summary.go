package storageversion

import (
	"maps"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/transform"
)

// summary writes what became of the kinds into the report.
func (r *run) summary() {
	report := r.view.Report()
	for _, k := range r.kinds {
		report.CustomResources = append(report.CustomResources, k.report(r.keys.Prefix))
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

func (k *kind) report(prefix string) transform.CustomResource {
	return transform.CustomResource{
		Prefix: prefix, CRD: k.name, Chosen: k.chosen, StorageVersion: k.storageVersion(), Found: k.found,
		Rewritten: total(k.rewritten), Unchanged: total(k.unchanged), Refused: total(k.refused), ManagedFields: k.managedFields,
		StoredVersions: transform.StoredVersions{Before: notNil(k.before), After: notNil(k.after), Kept: k.kept},
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
