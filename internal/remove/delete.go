package remove

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Delete deletes the objects of a choice.
type Delete struct {
	choice       *objects.Choice
	keep, orphan bool
}

// Plan implements [transform.Transform].
func (d *Delete) Plan(ctx context.Context, v *transform.View) error {
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	r := &run{
		ctx: ctx, view: v, types: types, gone: map[uid]bool{}, section: newRemoved(v.Report().CountUIDs),
		spaces: map[place]bool{}, definitions: map[folder]*left{}, claims: map[uid]bool{},
	}
	if err := r.deleteChosen(d); err != nil {
		return err
	}
	settle := r.collect
	if d.orphan {
		settle = r.releaseDependents
	}
	for _, step := range []func() error{r.deleteContents, r.deleteAddresses, r.checkAdmins, r.strand, settle, r.checkClaims, r.checkFreed} {
		if err := step(); err != nil {
			return err
		}
	}
	r.section.finish()
	v.Report().Sections = append(v.Report().Sections, &Deletion{r.section})
	return nil
}

// run is one deletion.
type run struct {
	ctx     context.Context
	view    *transform.View
	types   *inspect.Types
	section *Removed

	gone        map[uid]bool     // of deleted objects
	spaces      map[place]bool   // deleted namespaces
	definitions map[folder]*left // deleted CustomResourceDefinitions
	admins      []string         // keys of deleted bindings of cluster-admin
	claims      map[uid]bool     // PersistentVolumeClaims that go
	services    []*inspect.Object
	freed       objects.Freed
	stranded    []uid // Pods on deleted Nodes
}

type (
	uid    [16]byte // hash
	place  struct{ prefix, namespace string }
	folder struct {
		prefix   string
		resource schema.GroupResource
	}
	left struct {
		key     string // of the definition
		objects int    // that were not chosen
	}
)

func toUID(text []byte) uid {
	sum := sha256.Sum256(text)
	return uid(sum[:16])
}

// deleteChosen deletes the chosen objects, or the others.
func (r *run) deleteChosen(d *Delete) error {
	kept := 0
	err := stream.Each(d.choice.Candidates(r.ctx, r.view, false), func(one objects.Candidate) error {
		if one.Chosen == d.keep {
			kept++
			return nil
		}
		if isNeeded(one.Parsed) {
			if d.keep {
				return nil
			}
			r.view.Raise(string(one.Key), codeNeeded.Because("a cluster cannot live without the namespace %s", one.Parsed.Name))
		}
		return r.deleteOne(one.Entry, one.Parsed, true)
	})
	if d.keep && kept == 0 && err == nil {
		r.view.Raise("", codeNothingKept.Because("nothing is chosen to be kept"))
	}
	return err
}

// deleteOne deletes an object, and keeps what later steps need of it.
func (r *run) deleteOne(e *transform.Entry, key keys.Key, chosen bool) error {
	meta, err := encoding.ReadMeta(e.Value)
	if e.Undecryptable != nil {
		err = e.Undecryptable
	}
	switch {
	case err != nil:
		r.view.Raise(string(e.Key), codeUnread.Because("%v", err))
	case meta.UID != "":
		r.gone[toUID([]byte(meta.UID))] = true
	}
	if len(meta.Finalizers) > 0 {
		r.view.Raise(string(e.Key), transform.CodeFinalizers.Because("its finalizers do not run: %s", finding.List(meta.Finalizers)))
	}
	if chosen {
		if who := maker(key, meta); who != "" {
			r.view.Raise(string(e.Key), codeReturns.Because("%s makes it again", who))
		}
	}
	r.note(e, key)
	r.freed.Deleted(e)
	r.section.add(e.Key, key, chosen)
	return r.view.Delete(r.ctx, e.Key)
}

// note keeps what the deletion of an object of special types entails.
func (r *run) note(e *transform.Entry, key keys.Key) {
	switch key.Resource {
	case schema.GroupResource{Resource: "namespaces"}:
		r.spaces[place{key.Prefix, key.Name}] = true
	case keys.DefinitionType():
		r.definitions[folder{key.Prefix, schema.ParseGroupResource(key.Name)}] = &left{key: string(e.Key)}
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		if meta, err := encoding.ReadMeta(e.Value); err == nil {
			r.claims[toUID([]byte(meta.UID))] = true
		}
	case schema.GroupResource{Resource: "services"}:
		r.services = append(r.services, inspect.NewObject(r.types.Of(key.Resource), e))
	case bindings():
		if isAdmin(inspect.NewObject(r.types.Of(key.Resource), e)) {
			r.admins = append(r.admins, string(e.Key))
		}
	}
}

// reportUnparsed reports a key that seems to lie in a deleted namespace, though no server makes it.
func (r *run) reportUnparsed(e *transform.Entry, why error) {
	layout, is := e.Layout().(keys.Kubernetes)
	if !is {
		return
	}
	parts := strings.Split(strings.TrimPrefix(string(e.Key), layout.Prefix+"/"), "/")
	for _, part := range parts[1:] { // behind the resource
		if r.spaces[place{layout.Prefix, part}] {
			r.view.Raise(string(e.Key), codeUnparsed.Because("the namespace %s is deleted, and this key has its name: %v", part, why))
			return
		}
	}
}

// deleteContents deletes what is in deleted namespaces, and the objects of deleted definitions.
func (r *run) deleteContents() error {
	if len(r.spaces) == 0 && len(r.definitions) == 0 {
		return nil
	}
	err := stream.Each(r.view.Live(r.ctx, nil), func(e *transform.Entry) error {
		key, err := e.ParseKey()
		if err != nil {
			r.reportUnparsed(e, err)
			return nil
		}
		definition := r.definitions[folder{key.Prefix, key.Resource}]
		switch {
		case r.spaces[place{key.Prefix, key.Namespace}]:
			return r.deleteOne(e, key, false)
		case definition != nil:
			definition.objects++
			return r.deleteOne(e, key, false)
		}
		return nil
	})
	if err != nil {
		return err
	}
	byKey := slices.SortedFunc(maps.Values(r.definitions), func(a, b *left) int { return strings.Compare(a.key, b.key) })
	for _, d := range byKey {
		if d.objects > 0 {
			r.view.Raise(d.key, codeObjectsLeft.Because("%d of its objects are not chosen: on a server they are deleted with it", d.objects))
		}
	}
	return nil
}
