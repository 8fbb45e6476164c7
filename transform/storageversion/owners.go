package storageversion

import (
	"bytes"
	"context"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
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
	if e.Sealed != nil {
		r.view.Raise(string(e.Key), finding.Encrypted.Because("owner references in it cannot be seen: %v", e.Sealed))
		return nil
	}
	format := encoding.Detect(e.Value)
	if format == encoding.FormatJSON && !bytes.Contains(e.Value, []byte("ownerReferences")) {
		return nil
	}
	var refs []transform.Reference
	out, changed, err := encoding.EditOwnerReferences(e.Value, func(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
		to, isGone := gone.moved(ref.APIVersion, ref.Kind)
		if isGone && to == "" {
			r.view.Raise(string(e.Key), codeOwnerVersion.Because("its owner %s %s is named at %s, and no version of that kind is served", ref.Kind, ref.Name, ref.APIVersion))
		}
		if to == "" {
			return ref, false
		}
		refs = append(refs, transform.Reference{Key: string(e.Key), OwnerKind: ref.Kind, OwnerName: ref.Name, From: ref.APIVersion + "/" + ref.UID, To: to + "/" + ref.UID})
		ref.APIVersion = to
		return ref, true
	})
	if err != nil {
		r.view.Raise(string(e.Key), transform.CodeOf(err).Because("owner references in it cannot be seen: %v", err))
		return nil
	}
	if changed == 0 {
		return nil
	}
	staged, err := r.view.Derive(ctx, e.Key, e.Key, out, "owner references to versions that are gone")
	if staged {
		report := r.view.Report()
		report.References = append(report.References, refs...)
	}
	return err
}
