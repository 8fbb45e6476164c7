package storageversion

import (
	"bytes"
	"context"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// versionsGone knows which versions the garbage collector finds no objects at.
type versionsGone struct {
	kinds   map[gvr.GroupKind]*kind
	unknown bool // a definition cannot be read: nobody knows its kind, nor its versions
}

func (r *run) goneVersions() *versionsGone {
	g := &versionsGone{kinds: map[gvr.GroupKind]*kind{}}
	for _, k := range r.chosen() {
		if k.crd == nil {
			g.unknown = true
			continue
		}
		g.kinds[k.crd.GroupKind()] = k
	}
	return g
}

// moved says which apiVersion the garbage collector would find an owner at; gone is false where it finds it at the one given.
// to is empty where it finds it at none.
func (g *versionsGone) moved(apiVersion, name string) (to string, gone bool) {
	gv, err := gvr.ParseGroupVersion(apiVersion)
	if err != nil {
		return "", false
	}
	k := g.kinds[gv.WithKind(name).GroupKind()]
	if k == nil || k.crd.Served(gv.Version) {
		return "", false
	}
	if preferred := k.crd.PreferredVersion(); preferred != "" {
		to = gvr.GroupVersion{Group: gv.Group, Version: preferred}.String()
	}
	return to, true
}

// fixOwners moves the owner references of one object that name a version which is gone to one that is served. The garbage
// collector resolves apiVersion and kind through discovery, and cannot where the version is not in it.
func (r *run) fixOwners(ctx context.Context, e *transform.Entry, gone *versionsGone) error {
	if len(gone.kinds) == 0 && !gone.unknown {
		return nil
	}
	format := encoding.Detect(e.Value)
	if e.Undecryptable == nil && format == encoding.FormatJSON && !bytes.Contains(e.Value, []byte("ownerReferences")) {
		return nil
	}
	edit := func(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
		to, isGone := gone.moved(ref.APIVersion, ref.Kind)
		if isGone && to == "" {
			r.view.Raise(string(e.Key), codeOwnerVersion.Because(
				"its owner %s %s is named at %s, and no version of that kind is served", ref.Kind, ref.Name, ref.APIVersion))
		}
		if to != "" {
			ref.APIVersion = to
		}
		return ref, to != ""
	}
	return r.view.EditOwners(ctx, e, "owner references to versions that are gone", edit, nil)
}
