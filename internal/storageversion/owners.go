package storageversion

import (
	"bytes"
	"context"
	"slices"
	"sync"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

// versionsGone knows the versions at which the garbage collector finds no objects.
type versionsGone struct {
	kinds   map[gvr.GroupKind]*kind
	unknown bool      // a definition is unreadable: its kind and versions are unknown
	release int       // minor, of the server for built-in kinds; 0: all versions are served
	glances sync.Pool // of *encoding.Glance
}

func goneVersions(kinds []*kind, release int) *versionsGone {
	g := &versionsGone{kinds: map[gvr.GroupKind]*kind{}, release: release}
	for _, k := range kinds {
		switch {
		case !k.row.Chosen:
		case k.crd == nil:
			g.unknown = true
		default:
			g.kinds[k.crd.GroupKind()] = k
		}
	}
	return g
}

// empty reports whether no version is known to be gone.
func (g *versionsGone) empty() bool { return len(g.kinds) == 0 && g.release == 0 }

// builtin reports whether a server has or had a version without a CustomResourceDefinition.
func (g *versionsGone) builtin(gvk gvr.GroupVersionKind) bool {
	_, last := native.Serving(gvk)
	return last > 0 && g.kinds[gvk.GroupKind()] == nil
}

// moved returns the apiVersion at which the garbage collector would find an owner; empty for none.
// gone is false if the garbage collector finds the owner at the given apiVersion.
func (g *versionsGone) moved(apiVersion, name string) (to string, gone bool) {
	gv, err := gvr.ParseGroupVersion(apiVersion)
	if err != nil {
		return "", false
	}
	gvk := gv.WithKind(name)
	if g.release > 0 && g.builtin(gvk) {
		if native.ServedBy(gvk, g.release) {
			return "", false
		}
		if served, is := native.Replacement(gvk, g.release); is {
			to = served.GroupVersion().String()
		}
		return to, true
	}
	k := g.kinds[gvk.GroupKind()]
	if k == nil || k.crd.Served(gv.Version) {
		return "", false
	}
	if preferred := k.crd.PreferredVersion(); preferred != "" {
		to = gvr.GroupVersion{Group: gv.Group, Version: preferred}.String()
	}
	return to, true
}

// concerns reports whether an owner reference of a value names a removed version, or is unreadable.
func (g *versionsGone) concerns(e *transform.Entry) bool {
	if g.empty() && !g.unknown {
		return false
	}
	if e.Undecryptable != nil {
		return true
	}
	switch encoding.Detect(e.Value) {
	case encoding.FormatJSON:
		if !bytes.Contains(e.Value, []byte("References")) { // of ownerReferences; capitals are rare, and soon searched
			return false
		}
	case encoding.FormatProtobuf:
		if value, _ := e.ParseValue(); e.Check() == nil && !encoding.HasOwners(value.Raw) {
			return false
		}
	}
	look, _ := g.glances.Get().(*encoding.Glance)
	if look == nil {
		look = new(encoding.Glance)
	}
	defer g.glances.Put(look)
	if look.Glance(e.Value) {
		return slices.ContainsFunc(look.Owners, func(o encoding.Owner) bool {
			_, gone := g.moved(string(o.APIVersion), string(o.Kind))
			return gone
		})
	}
	found := false
	_, _, err := encoding.EditOwnerReferences(e.Value, func(
		ref encoding.OwnerReference,
	) (encoding.OwnerReference, bool) {
		_, gone := g.moved(ref.APIVersion, ref.Kind)
		found = found || gone
		return ref, false
	})
	return found || err != nil
}

// fixOwners changes owner references from removed versions to a served version: the garbage
// collector resolves apiVersion and kind through discovery.
func (s *storage) fixOwners(ctx context.Context, e *transform.Entry, gone *versionsGone) error {
	if e.Undecryptable != nil && s.opts.Release > 0 {
		s.Raise(string(e.Key), finding.Encrypted.Because("its version and owner references cannot be seen: %v",
			e.Undecryptable))
		return nil
	}
	var unserved []*finding.Finding
	edit := func(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
		to, isGone := gone.moved(ref.APIVersion, ref.Kind)
		if isGone && to == "" {
			unserved = append(unserved, codeOwnerVersion.Because(
				"its owner %s %s is named at %s, and no version of that kind is served", ref.Kind, ref.Name,
				ref.APIVersion))
		}
		if to != "" {
			ref.APIVersion = to
		}
		return ref, to != ""
	}
	return objects.EditOwners(ctx, s.View, e, edit, func() bool {
		for _, f := range unserved {
			s.Raise(string(e.Key), f)
		}
		return true
	})
}
