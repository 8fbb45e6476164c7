package remove

import (
	"cmp"
	"slices"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// collector follows owner references from deleted objects, as the garbage collector does.
type collector struct {
	*run
	kinds   map[schema.GroupKind]*inspect.Type
	owned   [][]byte // keys of objects with owners
	links   []link   // sorted by owner after reading
	doomed  map[objects.UID]bool
	results map[uint32]Collected // by index in owned
}

// link connects an owner with a dependent, an index in owned.
type link struct {
	owner objects.UID
	owned uint32
}

func (r *run) newCollector() *collector {
	c := &collector{run: r, kinds: map[schema.GroupKind]*inspect.Type{}, doomed: map[objects.UID]bool{},
		results: map[uint32]Collected{}}
	for _, t := range r.types.All() {
		c.kinds[schema.GroupKind{Group: t.Resource.Group, Kind: t.Kind}] = t
	}
	return c
}

// collect lists the garbage collector's actions after the deletion.
func (r *run) collect() error {
	if len(r.gone) == 0 {
		return nil
	}
	transform.Foresee(r.view)
	c := r.newCollector()
	if err := c.read(); err != nil {
		return err
	}
	for _, uid := range r.stranded {
		c.doomed[objects.ToUID(uid)] = true
	}
	var queue []objects.UID
	for i, l := range c.links {
		if (r.gone[l.owner] || c.doomed[l.owner]) && (i == 0 || c.links[i-1].owner != l.owner) {
			queue = append(queue, l.owner)
		}
	}
	for len(queue) > 0 {
		more, err := c.visit(queue[0])
		if err != nil {
			return err
		}
		queue = append(queue[1:], more...)
	}
	for _, result := range c.results {
		r.section.Collected = append(r.section.Collected, result)
	}
	return nil
}

// dependent is an entry with its owners.
type dependent struct {
	*transform.Entry
	owners []objects.UID
	err    error // why the owners are unknown
}

// read reads the owners, and reports whether there are any, or they are unknown.
func (h *dependent) read() bool {
	var g encoding.Glance
	if h.err = h.Undecryptable; h.err != nil {
		return true
	}
	if g.Glance(h.Value) {
		for _, owner := range g.Owners {
			h.owners = append(h.owners, objects.ToUID(owner.UID))
		}
		return len(h.owners) > 0
	}
	meta, err := encoding.ReadMeta(h.Value)
	h.err = err
	for _, owner := range meta.OwnerReferences {
		h.owners = append(h.owners, objects.ToUID(owner.UID))
	}
	return err != nil || len(h.owners) > 0
}

// withOwners yields the remaining objects with their owners, except Events and objects without a
// definition: the garbage collector does not see these.
func (r *run) withOwners(yield func(*dependent) error) error {
	look := func(e *transform.Entry) (*dependent, bool) {
		key, err := e.ParseKey()
		if err != nil || e.Layout() != keys.Layout(keys.Kubernetes{Prefix: key.Prefix}) ||
			key.Resource.Resource == "events" {
			return nil, false
		}
		if t := r.types.Of(key.Resource); t == nil || !t.Builtin && t.CRD == nil {
			return nil, false
		}
		h := &dependent{Entry: e}
		return h, h.read()
	}
	return stream.Each(transform.Visit(r.ctx, r.view, nil, look), yield)
}

// read reads all owner references, and reports the first unreadable value.
func (c *collector) read() error {
	unread, first, why := 0, "", error(nil)
	err := c.withOwners(func(h *dependent) error {
		if h.err != nil {
			if unread++; unread == 1 {
				first, why = string(h.Key), h.err
			}
			return nil
		}
		for _, owner := range h.owners {
			c.links = append(c.links, link{owner, uint32(len(c.owned))})
		}
		c.owned = append(c.owned, h.Key)
		return nil
	})
	if unread > 0 && err == nil {
		c.view.Raise(first, codeOwnersUnread.Because("owners of objects are unknown: %d; the first: %v",
			unread, why))
	}
	slices.SortFunc(c.links, compareLinks)
	return err
}

func compareLinks(a, b link) int {
	return cmp.Or(slices.Compare(a.owner[:], b.owner[:]), cmp.Compare(a.owned, b.owned))
}

// visit decides the fate of the dependents of a deleted owner, and returns the UIDs of deleted
// dependents.
func (c *collector) visit(owner objects.UID) (more []objects.UID, err error) {
	at, _ := slices.BinarySearchFunc(c.links, link{owner: owner}, compareLinks)
	for ; at < len(c.links) && c.links[at].owner == owner; at++ {
		n := c.links[at].owned
		if c.results[n].Does == Deleted {
			continue
		}
		e, err := c.view.Get(c.ctx, c.owned[n])
		if err != nil || e == nil {
			return nil, err
		}
		meta, err := encoding.ReadMeta(e.Value)
		if err != nil {
			continue // reported already
		}
		does, gone, err := c.fate(e, meta)
		if err != nil {
			return nil, err
		}
		if does == "" {
			continue
		}
		c.results[n] = Collected{Key: string(e.Key), Does: does, Owners: gone}
		if does == Deleted || does == Marked {
			c.collected(e, meta)
		}
		if does == Deleted && !slices.Contains(meta.Finalizers, v1.FinalizerOrphanDependents) {
			id := objects.ToUID(meta.UID)
			c.doomed[id] = true
			more = append(more, id)
		}
	}
	return more, nil
}

// collected records data about a collected object for later steps. A claim created for a Pod is
// always deleted with the Pod and needs no warning.
func (c *collector) collected(e *transform.Entry, meta encoding.Meta) {
	c.freed.Goes(e)
	madeForPod := slices.ContainsFunc(meta.OwnerReferences,
		func(of encoding.OwnerReference) bool { return of.Kind == "Pod" })
	if key, err := e.ParseKey(); err == nil && key.Resource.Resource == "persistentvolumeclaims" && !madeForPod {
		c.claims[objects.ToUID(meta.UID)] = true
	}
}

// fate returns the garbage collector's action on an object, "" for none, and the missing owners.
func (c *collector) fate(e *transform.Entry, meta encoding.Meta) (does Deed, gone []string, err error) {
	key, _ := e.ParseKey() // did not fail before
	if !meta.DeletionTimestamp.IsZero() {
		return "", nil, nil // already being deleted, or waiting for finalizers
	}
	there, unknown := 0, false
	for _, ref := range meta.OwnerReferences {
		state, err := c.ownerState(key, ref)
		switch {
		case err != nil:
			return "", nil, err
		case state == ownerThere:
			there++
			continue
		case state == ownerUnknown:
			unknown = true
		}
		if state == ownerGone || c.gone[objects.ToUID(ref.UID)] {
			gone = append(gone, ref.Kind+" "+ref.Name)
		}
	}
	own := slices.ContainsFunc(meta.Finalizers, func(f string) bool {
		return f != v1.FinalizerOrphanDependents && f != v1.FinalizerDeleteDependents
	})
	switch {
	case unknown:
		return Kept, gone, nil
	case len(gone) == 0:
		return "", nil, nil
	case there > 0:
		return Released, gone, nil
	case own:
		return Marked, gone, nil
	}
	return Deleted, gone, nil
}

// ownerState is the result of the garbage collector's search for an owner.
type ownerState int

const (
	ownerThere ownerState = iota
	ownerGone
	ownerUnknown // kind not served, or a namespaced owner of a cluster-scoped object
)

// ownerState finds an owner as the garbage collector does: by apiVersion and kind, in the namespace
// of the object, and by UID. An owner that waits for its dependents counts as gone.
func (c *collector) ownerState(of keys.Key, ref encoding.OwnerReference) (ownerState, error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	t := c.kinds[gvk.GroupKind()]
	served, err := c.serves(of.Prefix, t, gvk)
	if err != nil || !served || t.Namespaced && of.Namespace == "" {
		return ownerUnknown, err
	}
	key := keys.Key{Resource: t.Resource, Name: ref.Name}
	if t.Namespaced {
		key.Namespace = of.Namespace
	}
	e, err := c.view.Get(c.ctx, keys.Kubernetes{Prefix: of.Prefix}.Format(key))
	if err != nil || e == nil {
		return ownerGone, err
	}
	meta, err := encoding.ReadMeta(e.Value)
	switch {
	case e.Undecryptable != nil || err != nil:
		return ownerThere, nil
	case meta.UID != ref.UID || c.doomed[objects.ToUID(ref.UID)]:
		return ownerGone, nil
	case !meta.DeletionTimestamp.IsZero() && slices.Contains(meta.Finalizers, v1.FinalizerDeleteDependents):
		return ownerGone, nil
	}
	return ownerThere, nil
}

// serves reports whether a server serves a kind.
func (c *collector) serves(prefix string, t *inspect.Type, gvk schema.GroupVersionKind) (bool, error) {
	switch {
	case t == nil:
		return false, nil
	case t.CRD == nil: // some release since Kubernetes 1.22
		_, last := native.Serving(gvk)
		return last >= 22, nil
	case c.definitions[folder{prefix, t.Resource}] != nil:
		return false, nil
	}
	for _, version := range t.CRD.Object().Spec.Versions {
		if version.Name == gvk.Version {
			return version.Served, nil
		}
	}
	return false, nil
}

// releaseDependents removes deleted owners from the owner references of remaining objects.
func (r *run) releaseDependents() error {
	if len(r.gone) == 0 {
		return nil
	}
	c := r.newCollector()
	return r.withOwners(func(h *dependent) error {
		if h.err != nil {
			r.view.Raise(string(h.Key), transform.Unreadable(h.err))
			return nil
		}
		if !slices.ContainsFunc(h.owners, func(id objects.UID) bool { return r.gone[id] }) {
			return nil
		}
		return c.release(h.Entry)
	})
}

// release removes deleted and previously missing owners from an object. The garbage collector
// removes missing owners while another owner exists; if only missing owners remained, it would
// delete the object.
func (c *collector) release(e *transform.Entry) error {
	content, err := encoding.Get(e.Value, "metadata", "ownerReferences")
	if err != nil {
		c.view.Raise(string(e.Key), transform.Unreadable(err))
		return nil
	}
	key, err := e.ParseKey()
	if err != nil {
		return err
	}
	var stay []any
	refs, _ := content.([]any)
	for _, ref := range refs {
		fields, _ := ref.(map[string]any)
		text := func(name string) string { text, _ := fields[name].(string); return text }
		state, err := c.ownerState(key, encoding.OwnerReference{
			APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name"), UID: text("uid"),
		})
		if err != nil {
			return err
		}
		if state != ownerGone && !c.gone[objects.ToUID(text("uid"))] {
			stay = append(stay, ref)
		}
	}
	var owners any
	if len(stay) > 0 {
		owners = stay
	}
	value, err := encoding.Set(e.Value, owners, "metadata", "ownerReferences")
	if err != nil {
		c.view.Raise(string(e.Key), finding.Undecodable.Because("%v", err))
		return nil
	}
	c.section.Orphaned++
	return c.view.Put(c.ctx, e.Key, value)
}
