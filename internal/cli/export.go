package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/manifest"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print a namespace, or some objects, ready to apply",
		ArgsUsage: "SNAPSHOT [TYPE[/NAME]...]",
		Description: `etcdshift export before.db -n shop --show-secrets > shop.yaml
etcdshift export before.db -n shop --crds | kubectl apply -f -
etcdshift export before.db -n shop -l app=web
etcdshift export before.db -n shop cm/prices deploy/web | kubectl apply -f -`,
		UsageText: `Prints YAML for "kubectl apply -f": the Namespace, the CustomResourceDefinitions of its custom resources, then all its objects, each
after those it depends on. Fields that a server fills in are removed. With TYPE/NAME alone, or with -l, it prints these objects and no other.

Left out, and counted on stderr, is what the cluster makes again (objects with a controller, Endpoints of Services, kube-root-ca.crt,
default RBAC), finished Jobs and Pods, Events, Leases, and tokens of ServiceAccounts; --all exports them too. Objects with a credential
need --show-secrets. StorageClasses, PersistentVolumes, PriorityClasses, ClusterRoles and other cluster-scoped objects that the
namespace needs are named on stderr; --needed exports them too.

kubectl looks up all types before it applies anything: with custom resources, apply the output of --crds first.

Exit status: 0 exported, 1 something was not found or could not be read, 2 usage or a TYPE that the snapshot lacks, 3 not exported
without --show-secrets, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "export namespace `NS`"},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "export all namespaces"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "export the objects alone whose labels fit `SELECTOR`"},
			&cli.StringFlag{Name: "cluster", Usage: "look in logical cluster `NAME` of kcp"},
			&cli.BoolFlag{Name: "crds", Usage: "export the CustomResourceDefinitions alone"},
			&cli.BoolFlag{Name: "needed", Usage: "export the cluster-scoped objects too that the namespace needs"},
			&cli.BoolFlag{Name: "all", Usage: "leave nothing out"},
			atFlag("export"), showSecretsFlag()),
		Action: taking(runExport),
	}
}

func runExport(c *cli.Context, args []string) error {
	if !c.IsSet("namespace") && !c.Bool("all-namespaces") && !onlyNames(args[1:]) {
		return usagef(commandPath(c), "it takes a namespace with -n, or all with -A")
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	return snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		reading.Of(part(8, 1, files...))
		e, err := newExporter(c, files[0])
		if err != nil {
			return err
		}
		if err := e.learn(); err != nil {
			return err
		}
		if err := e.survey(args[1:]); err != nil {
			return err
		}
		reading.End()
		if err := e.exportAll(); err != nil {
			return err
		}
		e.say()
		return e.verdict()
	}))
}

// onlyNames reports whether single objects are asked for, each as TYPE/NAME.
func onlyNames(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(word, "/") })
}

// exporter exports a namespace, or all.
type exporter struct {
	*getter
	types   *inspect.Types
	labels  objects.Selector // by which asked objects are selected
	chooser manifest.Chooser
	left    map[manifest.Reason]map[string]int // how many, by type
	custom  map[string]bool                    // the names of the definitions of exported custom resources
	needs   map[manifest.Need]bool
	missing []string // what the snapshot lacks of the needed
	others  []string // needed, and not exported
}

func newExporter(c *cli.Context, o *opened) (*exporter, error) {
	if err := o.readAt(c); err != nil {
		return nil, err
	}
	layouts, err := o.Layouts(c.Context)
	if err != nil {
		return nil, err
	}
	if layouts.Flavour().KCP() && !c.IsSet("cluster") {
		return nil, usagef(commandPath(c), "the snapshot is of kcp; name a logical cluster with --cluster")
	}
	types, err := o.Types(c.Context)
	if err != nil {
		return nil, err
	}
	selector, err := objects.ParseSelector(c.String("selector"), "")
	if err != nil {
		return nil, usagef(commandPath(c), "%w", err)
	}
	options := newGetOptions(c, cmp.Or(c.String("namespace"), "default"))
	if !options.crds { // which prints definitions of what the labels select
		options.selector = selector
	}
	return &exporter{
		getter: &getter{c: c, opened: o, reader: o.Reader, layouts: layouts, options: options, met: map[[2]string]bool{}},
		types:  types, labels: selector, left: map[manifest.Reason]map[string]int{}, custom: map[string]bool{}, needs: map[manifest.Need]bool{},
	}, nil
}

// survey finds what to export, and what that needs, in one pass over the objects.
func (e *exporter) survey(words []string) error {
	asked, err := e.wanted(words)
	if err != nil || onlyNames(words) {
		e.asked = asked
		return err
	}
	services := asking{kind: e.types.Of(schema.GroupResource{Resource: "services"})}
	for _, a := range append([]asking{services}, asked...) { // by Services, Endpoints are left out
		err := stream.Each(e.reader.Objects(e.c.Context, a.kind, e.selection(a)), func(o *inspect.Object) error {
			if o.Err == nil && e.reason(a, o) == "" && e.labels.Fits(o.Content) {
				e.look(a.kind, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !e.options.selector.Empty() {
		e.asked = asked
		return nil
	}
	if err := e.bindings(); err != nil {
		return err
	}
	if e.asked = append(e.asked, e.namespaces()); e.options.crds { // the namespace has to be there too
		asked = nil
	}
	if err := e.addNeeded(); err != nil {
		return err
	}
	e.asked = append(e.asked, asked...)
	return nil
}

// look notes what an exported object needs.
func (e *exporter) look(kind *inspect.Type, o *inspect.Object) {
	if !kind.Builtin {
		e.custom[kind.Name()] = true
	}
	for _, n := range manifest.Needs(kind, o.Content) {
		e.needs[n] = true
	}
}

// wanted are the named types, or all namespaced ones that have objects, in order of dependence.
func (e *exporter) wanted(words []string) (out []asking, err error) {
	for _, word := range words {
		a, err := parseName(e.c, word, (*inspect.Reader).Types, e.reader)
		if err != nil {
			return nil, err
		}
		for _, kind := range a.kinds {
			out = append(out, asking{kind, a.in.Names})
		}
	}
	if len(words) == 0 {
		for _, t := range e.types.All() {
			if t.Namespaced && t.Objects > 0 {
				out = append(out, asking{kind: t})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b asking) int { return manifest.Rank(a.kind) - manifest.Rank(b.kind) })
	return out, nil
}

func (e *exporter) namespaces() asking {
	a := asking{kind: e.types.Of(schema.GroupResource{Resource: "namespaces"})}
	if e.options.namespace != "" {
		a.names = []string{e.options.namespace}
	}
	return a
}

// reason is why an object is left out; "" if it is not. What is named is exported.
func (e *exporter) reason(a asking, o *inspect.Object) manifest.Reason {
	if e.options.all || len(a.names) > 0 || !a.kind.Namespaced {
		return ""
	}
	return e.chooser.LeftOut(a.kind, o.Content)
}

// leaves counts an object that is left out.
func (e *exporter) leaves(a asking, o *gotten) bool {
	if e.options.crds && a.kind.Resource != keys.DefinitionType() {
		e.shown--
		return true
	}
	why := e.reason(a, o.Object)
	if why == "" {
		return false
	}
	e.shown--
	if e.left[why] == nil {
		e.left[why] = map[string]int{}
	}
	e.left[why][a.kind.Name()]++
	return true
}

// bindings adds the ClusterRoleBindings of the ServiceAccounts, and their ClusterRoles.
func (e *exporter) bindings() error {
	kind := e.types.Of(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"})
	return stream.Each(e.reader.Objects(e.c.Context, kind, inspect.Selection{Cluster: e.options.cluster}), func(o *inspect.Object) error {
		if o.Err != nil { // it may bind what is exported
			e.sayUnread(&gotten{Object: o}, o.Err)
			return nil
		}
		subjects, _, _ := unstructured.NestedSlice(o.Content, "subjects")
		bound := slices.ContainsFunc(subjects, func(s any) bool {
			subject, _ := s.(map[string]any)
			return subject["kind"] == "ServiceAccount" && (e.options.namespace == "" || subject["namespace"] == e.options.namespace)
		})
		if bound && !manifest.Bootstrapped(o.Content) {
			e.needs[manifest.Need{Group: kind.Resource.Group, Resource: kind.Resource.Resource, Name: o.Parsed.Name}] = true
			if role, _, _ := unstructured.NestedString(o.Content, "roleRef", "name"); role != "" {
				e.needs[manifest.Need{Group: kind.Resource.Group, Resource: "clusterroles", Name: role}] = true
			}
		}
		return nil
	})
}

// addNeeded asks for the definitions, and with --needed for the rest of what is needed.
func (e *exporter) addNeeded() error {
	gr := keys.DefinitionType()
	for name := range e.custom {
		e.needs[manifest.Need{Group: gr.Group, Resource: gr.Resource, Name: name}] = true
	}
	found := map[*inspect.Type][]string{}
	for _, n := range slices.SortedFunc(maps.Keys(e.needs), compareNeeds) {
		kind, name := e.types.Of(schema.GroupResource{Group: n.Group, Resource: n.Resource}), n.Resource+"/"+n.Name
		var object *inspect.Object
		for o, err := range e.reader.Objects(e.c.Context, kind, inspect.Selection{Cluster: e.options.cluster, Names: []string{n.Name}}) {
			if err != nil {
				return err
			}
			object = o
		}
		switch definition := kind.Resource == gr; {
		case object == nil:
			e.missing = append(e.missing, name)
		case manifest.Bootstrapped(object.Content):
		case definition, e.options.needed && !e.options.crds:
			found[kind] = append(found[kind], n.Name)
		default:
			e.others = append(e.others, name)
		}
	}
	for _, t := range e.types.All() {
		if found[t] != nil {
			e.asked = append(e.asked, asking{t, found[t]})
		}
	}
	return nil
}

func compareNeeds(a, b manifest.Need) int {
	return strings.Compare(a.Resource+"/"+a.Name, b.Resource+"/"+b.Name)
}

// say tells what was not exported and why, and what else the objects need.
func (e *exporter) say() {
	if e.options.quiet {
		return
	}
	line := func(format string, args ...any) {
		fmt.Fprintln(e.c.App.ErrWriter, render.Printable(fmt.Sprintf(format, args...)))
	}
	for _, why := range manifest.Reasons() {
		var counts []string
		for _, name := range slices.Sorted(maps.Keys(e.left[why])) {
			counts = append(counts, fmt.Sprintf("%d %s", e.left[why][name], name))
		}
		if counts != nil {
			line("left out, %s: %s", why, strings.Join(counts, ", "))
		}
	}
	if len(e.others) > 0 && !e.options.crds {
		line("needed, exported with --needed: %s", strings.Join(e.others, ", "))
	}
	if len(e.missing) > 0 {
		line("needed, and not in the snapshot: %s", strings.Join(e.missing, ", "))
	}
	if len(e.custom) > 0 && !e.options.crds {
		line("it holds custom resources: apply the output of --crds first, unless the cluster has their types")
	}
	if e.large > 0 {
		line("%s too large for the annotation of kubectl apply: use kubectl apply --server-side", phrase.Count(e.large, "object"))
	}
}

// exportAll prints YAML that can be applied, in order of dependence. Objects with secrets need
// --show-secrets: a redacted Secret would overwrite a good one.
func (e *exporter) exportAll() error {
	slices.SortStableFunc(e.asked, func(a, b asking) int { return manifest.Rank(a.kind) - manifest.Rank(b.kind) })
	printed := 0
	return e.each(func(a asking, o *gotten) error {
		if o.Err == nil && e.leaves(a, o) {
			return nil
		}
		return e.export(o, &printed)
	})
}

func (e *exporter) export(o *gotten, printed *int) (err error) {
	content := o.Content
	_, dying, _ := unstructured.NestedFieldNoCopy(content, "metadata", "deletionTimestamp")
	switch {
	case o.Err != nil:
		return nil
	case o.Partial:
		err = errors.New("this build does not know the kind, only its metadata could be read; -o raw has the bytes")
	default:
		content, err = manifest.Export(o.Type, o.Content)
	}
	if err != nil {
		e.shown--
		e.sayUnread(o, err)
		return nil
	}
	text, err := render.YAML(content)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Key, err)
	}
	if e.hide != nil && e.hide.Object(o.Key, content) {
		e.shown--
		e.kept++
		fmt.Fprintf(e.c.App.ErrWriter, "%s: not exported: its secrets need --show-secrets\n", render.Printable(string(o.Key)))
		return nil
	}
	const longest = 256 << 10 // annotations: kubectl keeps what it applied in one
	if applied, err := json.Marshal(content); err == nil && len(applied) > longest {
		e.large++
	}
	if dying && !e.options.quiet {
		fmt.Fprintf(e.c.App.ErrWriter, "%s: it was in deletion and is alive again once applied; Kubernetes' own finalizers are removed, others stay\n",
			render.Printable(string(o.Key)))
	}
	if *printed++; *printed > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err = e.c.App.Writer.Write(text)
	return err
}
