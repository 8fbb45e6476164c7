package inspect

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

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
