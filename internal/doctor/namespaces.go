package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// checkNamespaces reports namespaces that are gone, and reasons why others cannot be deleted.
func (d *doctor) checkNamespaces() {
	for at, contents := range d.contents.all() {
		_, there := d.namespaces[at]
		if there || slices.Contains(ownNamespaces(), at.name) || !d.whole[at.prefix] || d.unread[gvr.GroupResource{Resource: "namespaces"}] {
			continue
		}
		d.raiseMany(contents.total, codeNamespaceGone, "object", "%s of namespace %s, which is not there: %s", at.name, describe(contents))
	}
	for _, o := range d.kept["namespaces"] {
		ns, err := decodeAs[corev1.Namespace](o.entry)
		if err != nil {
			d.failed(fmt.Errorf("%s: %w", o.entry.Key, err))
			return
		}
		var finalizers []string
		for _, f := range ns.Spec.Finalizers {
			finalizers = append(finalizers, string(f))
		}
		at, what := space{o.Prefix, o.Name}, "no content"
		if in := d.contents.by[at]; in != nil {
			what = "content: " + describe(in)
		}
		what += d.holders(func(h hold) bool { return h.space == at })
		if len(d.dead) > 0 {
			what += "; APIServices that stop every deletion: " + list(d.dead)
		}
		d.raise(o.entry.Key, codeNamespaceTerminating, "it is being deleted since %s; finalizers: %s; %s",
			ns.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"), list(append(finalizers, ns.Finalizers...)), what)
	}
}

// holders names the finalizers of objects that are being deleted, each with its first object.
func (d *doctor) holders(of func(hold) bool) string {
	var words []string
	for h, c := range d.held.all() {
		if of(h) {
			words = append(words, fmt.Sprintf("%s of %s (%s)", h.finalizer, things(c.objects, "object"), c.first))
		}
	}
	if words == nil {
		return ""
	}
	return "; held by " + few(words, 5, "")
}

// describe lists the resources in a namespace, the most first.
func describe(contents *tally[gvr.GroupResource]) string {
	var words []string
	count := func(gr gvr.GroupResource) int { return contents.by[gr].objects }
	for _, gr := range slices.SortedFunc(maps.Keys(contents.by), func(a, b gvr.GroupResource) int {
		return cmp.Or(cmp.Compare(count(b), count(a)), cmp.Compare(a.String(), b.String()))
	}) {
		words = append(words, fmt.Sprintf("%d %s", count(gr), plain(gr)))
	}
	return few(words, 6, " resources")
}

// few joins words, not more than most; what is the noun of the rest.
func few(words []string, most int, what string) string {
	if n := len(words) - most; n > 0 {
		words = append(words[:most:most], fmt.Sprintf("and %d more%s", n, what))
	}
	return strings.Join(words, ", ")
}
