package get

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// ExportOptions limits or extends the export of the objects selected by the command line.
type ExportOptions struct {
	Named  bool // the command line names single objects: only these are exported, of any kind
	CRDs   bool // only the CustomResourceDefinitions
	Needed bool // also the cluster-scoped objects that a namespace needs
	All    bool // nothing is left out
}

// exporter exports a namespace, or all.
type exporter struct {
	*finder
	ExportOptions
	types   *inspect.Types
	labels  objects.Selector // selects objects
	omitter omitter
	left    map[omission]map[string]int // how many, by type
	custom  map[string]bool             // the names of the definitions of exported custom resources
	needs   map[objects.Need]bool
	missing []string // needed objects that the snapshot lacks
	others  []string // needed objects outside the export
	large   int      // exported objects too large for a client-side apply
	printed int
}

// Export prints the selected objects of r, or all in namespaces (with o.Deleted, none), as YAML for
// "kubectl apply", each after its dependencies.
func Export(ctx context.Context, r *inspect.Reader, asked []Asked, o Options, x ExportOptions) error {
	g, err := newFinder(ctx, r, nil, o)
	if err != nil {
		return err
	}
	if g.layouts.Flavour().KCP() && o.AnyCluster {
		return transform.Usagef("%s is of kcp; name a logical cluster with --cluster", r.Snapshot().Path())
	}
	e := &exporter{finder: g, ExportOptions: x, labels: o.Selector, left: map[omission]map[string]int{},
		custom: map[string]bool{}, needs: map[objects.Need]bool{}}
	if e.types, err = r.Types(ctx); err != nil {
		return err
	}
	if e.CRDs { // the labels select custom resources
		e.Selector = objects.Everything()
	}
	if err := e.learn(); err != nil {
		return err
	}
	if err := e.survey(e.wanted(asked)); err != nil {
		return err
	}
	e.Begin()
	if err := e.exportAll(); err != nil {
		return err
	}
	e.say()
	return e.verdict()
}

// survey finds the objects to export and their needs, in one pass over the objects.
func (e *exporter) survey(asked []Asked) error {
	if e.Named {
		e.asked = asked
		return nil
	}
	services := Asked{Type: e.types.Of(schema.GroupResource{Resource: "services"})}
	for _, a := range append([]Asked{services}, asked...) { // Services decide which Endpoints are left out
		err := stream.Each(e.ahead(e.selected(a), e.decode), func(o *gotten) error {
			e.omitter.see(a.Type, o.Content)
			if o.Err == nil && e.reason(a, o.Object) == "" && e.labels.Fits(o.Content) {
				e.look(a.Type, o.Object)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !e.Selector.Empty() {
		e.asked = asked
		return nil
	}
	if err := e.bindings(); err != nil {
		return err
	}
	if err := e.addNamespaces(); err != nil {
		return err
	}
	if e.CRDs { // the namespace must exist too
		asked = nil
	}
	if err := e.addNeeded(); err != nil {
		return err
	}
	e.asked = append(e.asked, asked...)
	return nil
}

// look remembers the objects needed by an exported object.
func (e *exporter) look(kind *inspect.Type, o *inspect.Object) {
	if !kind.Builtin {
		e.custom[kind.Name()] = true
	}
	for _, n := range objects.Needs(o.Content) {
		// the other objects are in the export, or belong to the destination
		if n.Namespace == "" && n.Resource.Resource != "nodes" && !n.Optional && kind.Builtin {
			e.needs[n] = true
		}
	}
}

// wanted returns the chosen types, or all namespaced types with objects, in order of dependency.
func (e *exporter) wanted(asked []Asked) []Asked {
	if asked == nil && !e.Deleted {
		for _, t := range e.types.All() {
			if t.Namespaced && t.Objects > 0 {
				asked = append(asked, Asked{Type: t})
			}
		}
	}
	sortByRank(asked)
	return asked
}

func sortByRank(asked []Asked) {
	slices.SortStableFunc(asked, func(a, b Asked) int { return rank(a.Type) - rank(b.Type) })
}

// addNamespaces adds the Namespaces of the objects: not one of deleted objects that exists.
func (e *exporter) addNamespaces() error {
	a := Asked{Type: e.types.Of(schema.GroupResource{Resource: "namespaces"})}
	if e.Namespace != "" {
		a.Names = []string{e.Namespace}
		o, err := e.live(a.Type, e.Namespace)
		if err != nil || o != nil && e.Deleted {
			return err
		}
	}
	e.asked = append(e.asked, a)
	return nil
}

// live returns an object that exists; nil for none.
func (e *exporter) live(kind *inspect.Type, name string) (object *inspect.Object, err error) {
	for o, err := range e.reader.Objects(e.ctx, kind, inspect.Selection{Cluster: e.Cluster, Names: []string{name}}) {
		if err != nil {
			return nil, err
		}
		object = o
	}
	return object, nil
}

// reason returns why an object is left out; "" if it is exported. Named objects are always
// exported.
func (e *exporter) reason(a Asked, o *inspect.Object) omission {
	if e.All || len(a.Names) > 0 || !a.Type.Namespaced {
		return ""
	}
	return e.omitter.leftOut(a.Type, o.Content)
}

// isOther reports whether only definitions are exported, and a type is another one.
func (e *exporter) isOther(a Asked) bool { return e.CRDs && a.Type.Resource != keys.DefinitionType() }

// leaves counts an object to leave out, and returns true.
func (e *exporter) leaves(a Asked, o *gotten) bool {
	if e.isOther(a) {
		e.shown--
		return true
	}
	if o.Content == nil { // written
		return false
	}
	why := e.reason(a, o.Object)
	if why == "" {
		return false
	}
	e.shown--
	if e.left[why] == nil {
		e.left[why] = map[string]int{}
	}
	e.left[why][a.Type.Name()]++
	return true
}

// bindings adds the ClusterRoleBindings of the ServiceAccounts, and their ClusterRoles.
func (e *exporter) bindings() error {
	kind := e.types.Of(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"})
	all := e.reader.Objects(e.ctx, kind, inspect.Selection{Cluster: e.Cluster})
	return stream.Each(all, func(o *inspect.Object) error {
		if o.Err != nil { // the object may bind an exported ServiceAccount
			e.sayUnread(&gotten{Object: o}, o.Err)
			return nil
		}
		subjects, _, _ := unstructured.NestedSlice(o.Content, "subjects")
		bound := slices.ContainsFunc(subjects, func(s any) bool {
			subject, _ := s.(map[string]any)
			return subject["kind"] == "ServiceAccount" && (e.Namespace == "" || subject["namespace"] == e.Namespace)
		})
		if bound && !objects.Bootstrapped(o.Content) {
			e.needs[objects.Need{Resource: kind.Resource, Name: o.Parsed.Name}] = true
			e.look(kind, o)
		}
		return nil
	})
}

// addNeeded adds the definitions, and with --needed all other objects that the export depends on.
func (e *exporter) addNeeded() error {
	gr := keys.DefinitionType()
	for name := range e.custom {
		e.needs[objects.Need{Resource: gr, Name: name}] = true
	}
	found := map[*inspect.Type][]string{}
	for _, n := range slices.SortedFunc(maps.Keys(e.needs), compareNeeds) {
		kind, name := e.types.Of(n.Resource), n.Resource.Resource+"/"+n.Name
		object, err := e.live(kind, n.Name)
		if err != nil {
			return err
		}
		switch definition := kind.Resource == gr; {
		case e.Deleted && object != nil: // it need not come back
		case e.Deleted && definition: // deleted with its objects
			found[kind] = append(found[kind], n.Name)
		case object == nil:
			e.missing = append(e.missing, name)
		case objects.Bootstrapped(object.Content):
		case definition, e.Needed && !e.CRDs:
			found[kind] = append(found[kind], n.Name)
		default:
			e.others = append(e.others, name)
		}
	}
	for _, t := range e.types.All() {
		if found[t] != nil {
			e.asked = append(e.asked, Asked{t, found[t]})
		}
	}
	return nil
}

func compareNeeds(a, b objects.Need) int {
	return strings.Compare(a.Resource.Resource+"/"+a.Name, b.Resource.Resource+"/"+b.Name)
}

// say counts the omitted objects for each reason, and lists needs outside the export.
func (e *exporter) say() {
	if e.Quiet {
		return
	}
	line := func(format string, args ...any) {
		fmt.Fprintln(e.Errs, render.Printable(fmt.Sprintf(format, args...)))
	}
	for _, why := range omissions() {
		var counts []string
		for _, name := range slices.Sorted(maps.Keys(e.left[why])) {
			counts = append(counts, fmt.Sprintf("%d %s", e.left[why][name], name))
		}
		if counts != nil {
			line("left out, %s: %s", why, strings.Join(counts, ", "))
		}
	}
	if len(e.others) > 0 && !e.CRDs {
		line("needed, exported with --needed: %s", strings.Join(e.others, ", "))
	}
	if len(e.missing) > 0 {
		line("needed, and not in the snapshot: %s", strings.Join(e.missing, ", "))
	}
	if len(e.custom) > 0 && !e.CRDs {
		line("it holds custom resources: apply the output of --crds first, unless the cluster has their types")
	}
	if e.large > 0 {
		line("%s too large for the annotation of kubectl apply: use kubectl apply --server-side",
			phrase.Count(e.large, "object"))
	}
}

// exportAll prints YAML for "kubectl apply", in order of dependency. Objects with secrets need
// --show-secrets: a redacted Secret would overwrite a good one.
func (e *exporter) exportAll() error {
	sortByRank(e.asked)
	for _, a := range e.asked {
		write := func(o *gotten) {
			if e.choose(o) && !e.isOther(a) && e.reason(a, o.Object) == "" {
				e.write(o)
			}
		}
		err := stream.Each(e.objects(a, write), func(o *gotten) error {
			if o.Err != nil || e.leaves(a, o) {
				return nil
			}
			return e.export(o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the manifest of an object, which must be decoded. Concurrent calls are allowed.
func (e *exporter) write(o *gotten) {
	content := o.Content
	o.Content = nil
	if o.err = o.CheckServed(); o.err != nil {
		return
	}
	_, o.dying, _ = unstructured.NestedFieldNoCopy(content, "metadata", "deletionTimestamp")
	content, err := toManifest(o.Type, content)
	if err == nil {
		o.text, err = render.YAML(content)
	}
	if o.err = err; err != nil {
		return
	}
	const longest = 256 << 10    // annotations: kubectl stores the applied object in one
	if len(o.text) > longest/8 { // escapes in JSON are longer
		applied, err := json.Marshal(content)
		o.large = err == nil && len(applied) > longest
	}
	o.hidden = e.hide != nil && e.hide.Object(o.Key, content)
}

// export prints the manifest of an object.
func (e *exporter) export(o *gotten) (err error) {
	switch {
	case o.err != nil:
		e.shown--
		e.sayUnread(o, o.err)
		return nil
	case o.hidden:
		e.shown--
		e.kept++
		fmt.Fprintf(e.Errs, "%s: not exported: its secrets need --show-secrets\n", render.Printable(string(o.Key)))
		return nil
	case o.large:
		e.large++
	}
	if o.dying && !e.Quiet {
		fmt.Fprintf(e.Errs, "%s: it was in deletion and is alive again once applied; "+
			"Kubernetes' own finalizers are removed, others stay\n", render.Printable(string(o.Key)))
	}
	if e.printed++; e.printed > 1 {
		if _, err := io.WriteString(e.Out, "---\n"); err != nil {
			return err
		}
	}
	_, err = e.Out.Write(o.text)
	return err
}
