package inspect

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"sync"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Errors of Resolve; the text around them lists similar types.
var (
	ErrUnknownType = finding.WithLasting(errors.New("no such type"),
		"\"etcdshift status\" lists what the snapshot holds")
	ErrAmbiguousType = finding.WithLasting(errors.New("more than one type has that name"),
		"give the type with its group, as in the message")
)

// Type is a resource of the API, with its names and its scope.
type Type struct {
	Resource   gvr.GroupResource
	Kind       string
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	Builtin    bool        // a type of kube-apiserver; else custom
	CRD        *schema.CRD // nil without a readable definition
	Objects    int         // keys in its folders
}

// Name returns "pods" or "widgets.example.com".
func (t *Type) Name() string { return t.Resource.String() }

// hasName reports whether kubectl accepts name, in lower case, for the type without its group.
func (t *Type) hasName(name string) bool {
	return name != "" && (name == t.Resource.Resource || name == t.Singular || name == strings.ToLower(t.Kind))
}

func (t *Type) hasVersion(version string) bool {
	if t.CRD != nil {
		_, err := t.CRD.Version(version)
		return err == nil
	}
	return native.Known(gvr.GroupVersionKind{Group: t.Resource.Group, Version: version, Kind: t.Kind})
}

// Types holds the types of a snapshot: the built-in types, the types of its
// CustomResourceDefinitions, and the types of other folders.
type Types struct {
	all     []*Type // the built-in types, then the others by group and resource
	builtin int     // of all
	gone    []*Type // types of deleted records only
	by      map[gvr.GroupResource]*Type
}

// newTypes returns Types with only the built-in types.
func newTypes() *Types {
	t := &Types{by: map[gvr.GroupResource]*Type{}}
	for _, b := range Builtins() {
		t.add(&t.all, b)
	}
	t.builtin = len(t.all)
	return t
}

// add adds a type to a list of t, unless t has a type for the resource.
func (t *Types) add(to *[]*Type, one *Type) {
	if t.by[one.Resource] == nil {
		t.by[one.Resource] = one
		*to = append(*to, one)
	}
}

// BuiltinTypes returns the built-in types, without a count of Objects, if each of the names is the
// plural, singular or kind of a built-in type: custom types then cannot change the result of
// Resolve.
func BuiltinTypes(names string) (*Types, bool) {
	t := newTypes()
	for name := range strings.SplitSeq(names, ",") {
		name = strings.ToLower(name)
		if !slices.ContainsFunc(t.all, func(one *Type) bool { return one.hasName(name) || one.Name() == name }) {
			return nil, false
		}
	}
	return t, true
}

// Types finds the types in one pass over the keys. Without a readable CustomResourceDefinition, the
// type of an object comes from its folder only.
func (r *Reader) Types(ctx context.Context) (*Types, error) {
	t, err := r.Defined(ctx)
	if err != nil {
		return nil, err
	}
	layouts := *r.layouts // found by Defined
	type folder struct {
		first   keys.Key
		at      []byte
		objects int
	}
	look := func(rec *snapshot.Record, found []folder) ([]folder, error) {
		key, _, err := layouts.Parse(rec.Key)
		if err != nil { // of no resource
			return found, nil
		}
		i := slices.IndexFunc(found, func(f folder) bool { return f.first.Resource == key.Resource })
		if i < 0 {
			i, found = len(found), append(found, folder{first: key, at: rec.Key})
		}
		found[i].objects++
		return found, nil
	}
	for f, err := range visit(ctx, r, look) {
		if err != nil {
			return nil, err
		}
		t.count(f.first, f.objects, func() *Entry {
			e, _ := r.Get(ctx, f.at) // without it, the kind is unknown
			return e
		})
	}
	return t, nil
}

// Defined finds the built-in types and the types of CustomResourceDefinitions, for callers that
// Count all objects anyway.
func (r *Reader) Defined(ctx context.Context) (*Types, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	t := newTypes()
	for _, dir := range layouts.Dirs(keys.DefinitionType()) {
		for rec, err := range liveOf(ctx, r, dir, nil) {
			if err != nil {
				break // without definitions, types are known by folders; the next pass returns other errors
			}
			e, err := r.Entry(ctx, rec)
			if err != nil {
				break
			}
			if crd, err := schema.ParseCRD(e.Value); err == nil {
				t.insert(customType(crd))
			}
		}
	}
	return t, nil
}

// Count counts an object. The first object of a folder without a definition adds a type.
func (t *Types) Count(e *Entry) {
	if key, err := e.ParseKey(); err == nil { // other keys have no resource
		t.count(key, 1, func() *Entry { return e })
	}
}

func (t *Types) count(key keys.Key, objects int, first func() *Entry) {
	if t.by[key.Resource] == nil {
		t.insert(folderType(key, first()))
	}
	t.by[key.Resource].Objects += objects
}

// Define replaces an earlier CustomResourceDefinition. An unreadable definition changes nothing.
func (t *Types) Define(e *Entry) {
	crd, err := schema.ParseCRD(e.Value)
	if err != nil || e.Undecryptable != nil {
		return
	}
	one := customType(crd)
	if old := t.by[one.Resource]; old != nil && !old.Builtin {
		one.Objects = old.Objects
		*old = *one
		return
	}
	t.insert(one)
}

// insert adds a custom type, unless t has a type for the resource.
func (t *Types) insert(one *Type) {
	if t.by[one.Resource] != nil {
		return
	}
	t.by[one.Resource] = one
	at, _ := slices.BinarySearchFunc(t.all[t.builtin:], one, func(a, b *Type) int {
		return cmp.Or(strings.Compare(a.Resource.Group, b.Resource.Group),
			strings.Compare(a.Resource.Resource, b.Resource.Resource))
	})
	t.all = slices.Insert(t.all, t.builtin+at, one)
}

// TypesEver returns Types with the types of deleted CustomResourceDefinitions and empty folders, as
// far back as the snapshot keeps them. Resolve finds such a type if no other type has the name; All
// omits such types.
func (r *Reader) TypesEver(ctx context.Context) (*Types, error) {
	t, err := r.Types(ctx)
	if err != nil {
		return nil, err
	}
	layouts := *r.layouts // found by Types
	for _, dir := range layouts.Dirs(keys.DefinitionType()) {
		for d, err := range r.Deleted(ctx, dir) {
			if err != nil {
				return nil, err
			}
			if d.Last != nil {
				if crd, err := schema.ParseCRD(d.Last.Value); err == nil {
					t.add(&t.gone, customType(crd))
				}
			}
		}
	}
	for d, err := range deleted(ctx, r, nil) {
		if err != nil {
			return nil, err
		}
		key, _, err := layouts.Parse(d.Key)
		if err != nil || t.by[key.Resource] != nil {
			continue
		}
		var last *Entry
		if d.Last != nil {
			if last, err = r.Entry(ctx, d.Last); err != nil {
				return nil, err
			}
		}
		t.add(&t.gone, folderType(key, last))
	}
	return t, nil
}

func customType(crd *schema.CRD) *Type {
	names, accepted := crd.Object().Spec.Names, crd.Object().Status.AcceptedNames
	if accepted.Plural != "" {
		names = accepted
	}
	return &Type{
		Resource: crd.GroupResource(), Kind: crd.GroupKind().Kind, Singular: strings.ToLower(names.Singular),
		ShortNames: names.ShortNames, Categories: names.Categories, Namespaced: crd.Object().Spec.Scope == "Namespaced",
		CRD: crd,
	}
}

// folderType returns the type of a folder without definition; e is one of its objects, or nil.
func folderType(key keys.Key, e *Entry) *Type {
	kind := ""
	if e != nil {
		v, _ := e.ParseValue()
		kind = v.GVK.Kind
	}
	return &Type{Resource: key.Resource, Kind: kind, Singular: strings.ToLower(kind), Namespaced: key.Namespace != ""}
}

// All lists the types, the built-in types first.
func (t *Types) All() []*Type { return t.all }

// Of returns the type of a resource; nil for none.
func (t *Types) Of(gr gvr.GroupResource) *Type {
	if other, is := otherGroups()[gr]; is {
		gr = other
	}
	return t.by[gr]
}

// builtinTypes lists the resources that kube-apiserver 1.16 to 1.37 serves and stores, one a line:
// group (- for the core group), plural, kind, scope (C or N), short names (- for none), categories.
// The source is "kubectl api-resources -o wide".
//
//go:embed builtins.txt
var builtinTypes string

// otherGroups maps types to the built-in types of their keys.
var otherGroups = sync.OnceValue(func() map[gvr.GroupResource]gvr.GroupResource {
	return map[gvr.GroupResource]gvr.GroupResource{
		{Group: "events.k8s.io", Resource: "events"}:   {Resource: "events"},
		{Group: "extensions", Resource: "ingresses"}:   {Group: "networking.k8s.io", Resource: "ingresses"},
		{Group: "extensions", Resource: "deployments"}: {Group: "apps", Resource: "deployments"},
		{Group: "extensions", Resource: "daemonsets"}:  {Group: "apps", Resource: "daemonsets"},
		{Group: "extensions", Resource: "replicasets"}: {Group: "apps", Resource: "replicasets"},
		{Group: "extensions", Resource: "networkpolicies"}: {Group: "networking.k8s.io",
			Resource: "networkpolicies"},
		{Group: "extensions", Resource: "podsecuritypolicies"}: {Group: "policy", Resource: "podsecuritypolicies"},
	}
})

// Builtins lists the types of kube-apiserver, in the order in which kubectl prefers groups.
func Builtins() (types []*Type) {
	list := func(words string) []string {
		if words == "-" {
			return nil
		}
		return strings.Split(words, ",")
	}
	for line := range strings.Lines(builtinTypes) {
		f := append(strings.Fields(line), "-")
		types = append(types, &Type{
			Resource: gvr.GroupResource{Group: strings.Trim(f[0], "-"), Resource: f[1]}, Kind: f[2],
			Singular:   strings.ToLower(f[2]),
			Namespaced: f[3] == "N", ShortNames: list(f[4]), Categories: slices.Clone(list(f[5])), Builtin: true,
		})
	}
	return types
}
