package inspect

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
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
	for rec, err := range r.live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		key, _, err := layouts.Parse(rec.Key)
		if err != nil { // of no resource
			continue
		}
		t.count(key, func() *Entry {
			e, _ := r.Get(ctx, rec.Key) // without it, the kind is unknown
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
		t.count(key, func() *Entry { return e })
	}
}

func (t *Types) count(key keys.Key, first func() *Entry) {
	if t.by[key.Resource] == nil {
		t.insert(folderType(key, first()))
	}
	t.by[key.Resource].Objects++
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

// Resolve finds types by the names that kubectl accepts: a plural, singular or short name or a
// kind, alone or with a group ("deployments.apps", "deployments.v1.apps", "widgets.example.com"); a
// category ("all"); or several names separated by commas. Case is ignored. A built-in type has
// precedence over a custom type.
//
// The errors are ErrUnknownType and ErrAmbiguousType, with similar names.
func (t *Types) Resolve(names string) ([]*Type, error) {
	var out []*Type
	for name := range strings.SplitSeq(names, ",") {
		name = strings.ToLower(name)
		found, err := t.resolve(name)
		if errors.Is(err, ErrUnknownType) && t.gone != nil {
			err = t.unknown(name)
			if before, goneErr := (&Types{all: t.gone}).resolve(name); !errors.Is(goneErr, ErrUnknownType) {
				found, err = before, goneErr
			}
		}
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

func (t *Types) resolve(name string) ([]*Type, error) {
	byName := func(one *Type) bool { return one.hasName(name) || one.Name() == name }
	if found, err := t.preferred(name, byName); found != nil || err != nil {
		return found, err
	}
	byShortName := func(one *Type) bool { return slices.Contains(one.ShortNames, name) }
	if found, err := t.preferred(name, byShortName); found != nil || err != nil {
		return found, err
	}
	if first, group, qualified := strings.Cut(name, "."); qualified {
		version, rest, _ := strings.Cut(group, ".")
		for _, group := range []string{group, rest} {
			if other, is := otherGroups()[gvr.GroupResource{Group: group, Resource: first}]; is {
				return []*Type{t.Of(other)}, nil
			}
		}
		found, err := t.preferred(name, func(one *Type) bool {
			if !one.hasName(first) && !slices.Contains(one.ShortNames, first) {
				return false
			}
			g := one.Resource.Group
			return g == group || g == rest && one.hasVersion(version) || g != "" && strings.HasPrefix(g, group+".")
		})
		if found != nil || err != nil {
			return found, err
		}
	}
	var category []*Type
	for _, one := range t.all {
		if slices.Contains(one.Categories, name) {
			category = append(category, one)
		}
	}
	if category == nil {
		return nil, t.unknown(name)
	}
	return category, nil
}

// preferred returns the matching type: the first built-in type, or the only custom type.
func (t *Types) preferred(name string, fits func(*Type) bool) ([]*Type, error) {
	var found []*Type
	for _, one := range t.all {
		if fits(one) {
			found = append(found, one)
		}
	}
	if len(found) > 1 && !found[0].Builtin {
		return nil, fmt.Errorf("%q: %w: %s", name, ErrAmbiguousType, listed(found))
	}
	return found[:min(len(found), 1)], nil
}

func listed(types []*Type) string {
	const most = 8
	names := make([]string, 0, most)
	for _, t := range types[:min(len(types), most)] {
		names = append(names, t.Name())
	}
	if len(types) > most {
		names = append(names, fmt.Sprintf("and %d more", len(types)-most))
	}
	return strings.Join(names, ", ")
}

// unknown returns ErrUnknownType with the types of similar names.
func (t *Types) unknown(name string) error {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.TrimSuffix(stem, "s")
	var like []*Type
	for _, one := range slices.Concat(t.all, t.gone) {
		plural := strings.TrimSuffix(one.Resource.Resource, "s")
		if len(stem) > 2 && (strings.Contains(plural, stem) || strings.Contains(stem, plural)) || near(stem, plural) {
			like = append(like, one)
		}
	}
	if like == nil {
		return fmt.Errorf("%q: %w", name, ErrUnknownType)
	}
	is := "is"
	if len(like) > 1 {
		is = "are"
	}
	return fmt.Errorf("%q: %w; there %s %s", name, ErrUnknownType, is, listed(like))
}

// near reports whether two words differ by one letter, or by two letters swapped.
func near(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) < 4 || len(b)-len(a) > 1 || a == b {
		return a == b
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// builtinTypes lists the resources that kube-apiserver 1.16 to 1.37 serves and stores, one a line:
// group (- for the core group), plural, kind, scope (C or N), short names (- for none), categories.
// The source is "kubectl api-resources -o wide".
//
//go:embed builtins.txt
var builtinTypes string

// otherGroups maps types to the built-in types of their keys.
func otherGroups() map[gvr.GroupResource]gvr.GroupResource {
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
}

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
