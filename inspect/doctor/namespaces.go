package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// concludeNamespaces reports namespaces that are being deleted, with the reasons that hold them,
// and objects of namespaces that are gone.
func (d *doctor) concludeNamespaces(context.Context) error {
	inside := ordered[space, []content]{}
	d.contents.each(func(at content, _ int, _ []byte) {
		parts := inside.of(at.space)
		*parts = append(*parts, at)
	})
	for _, at := range inside.order {
		if d.namespaces[at] != nil || ownNamespace(at.name) || d.unread[gvr.GroupResource{Resource: "namespaces"}] || !d.wholeCluster(at.prefix) {
			continue
		}
		parts, objects := *inside.by[at], 0
		for _, part := range parts {
			objects += d.contents.by[part].objects
		}
		first := d.contents.by[parts[0]].first
		d.raise(first, codeNamespaceGone.Because(
			"%s of namespace %s, which is not there: %s", things(objects, "object"), at.name, d.describe(parts)).About(objects))
	}
	for at, ns := range d.namespaces {
		if ns.meta.DeletionTimestamp.IsZero() {
			continue
		}
		var obj corev1.Namespace
		if err := decodeInto(ns.entry, &obj); err != nil {
			return fmt.Errorf("%s: %w", ns.entry.Key, err)
		}
		var finalizers []string
		for _, f := range obj.Spec.Finalizers {
			finalizers = append(finalizers, string(f))
		}
		finalizers = append(finalizers, obj.Finalizers...)
		what := "no content"
		if parts := inside.by[at]; parts != nil {
			what = "content: " + d.describe(*parts)
		}
		what += d.holders(func(c content) bool { return c.space == at })
		if len(d.dead) > 0 {
			what += "; APIServices that stop every deletion: " + strings.Join(d.dead, ", ")
		}
		d.raise(ns.entry.Key, codeNamespaceTerminating.Because(
			"it is being deleted since %s; finalizers: %s; %s", ns.meta.DeletionTimestamp.Format("2006-01-02T15:04:05Z"), list(finalizers), what))
	}
	return nil
}

// holders lists the finalizers of objects that are being deleted, with the first object of each.
func (d *doctor) holders(of func(content) bool) string {
	const most = 5
	var words []string
	more := 0
	d.held.each(func(h hold, n int, first []byte) {
		switch {
		case !of(h.content):
		case len(words) == most:
			more++
		default:
			words = append(words, fmt.Sprintf("%s of %s (%s)", h.finalizer, things(n, "object"), first))
		}
	})
	if len(words) == 0 {
		return ""
	}
	if more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return "; held by " + strings.Join(words, ", ")
}

// ownNamespace reports whether API servers create the namespace themselves.
func ownNamespace(name string) bool {
	return slices.Contains([]string{corev1.NamespaceDefault, corev1.NamespaceNodeLease, "kube-public", "kube-system"}, name)
}

// describe counts the objects of a namespace by resource, the most first.
func (d *doctor) describe(parts []content) string {
	const most = 6
	count := func(c content) int { return d.contents.by[c].objects }
	slices.SortFunc(parts, func(a, b content) int {
		return cmp.Or(cmp.Compare(count(b), count(a)), cmp.Compare(a.resource.String(), b.resource.String()))
	})
	var words []string
	for _, c := range parts[:min(len(parts), most)] {
		words = append(words, fmt.Sprintf("%d %s", count(c), plain(c.resource)))
	}
	if n := len(parts) - most; n > 0 {
		words = append(words, fmt.Sprintf("and %d more resources", n))
	}
	return strings.Join(words, ", ")
}
