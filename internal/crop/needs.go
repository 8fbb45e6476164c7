package crop

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// needs finds the objects that a part needs.
type needs struct {
	ctx      context.Context
	view     *transform.View
	types    *inspect.Types
	finder   *objects.Finder
	selected *objects.Selected
	takes    bool // the needed objects are taken
	// outsider is called for a selected object with an owner that is not selected, unless the
	// needed objects are taken.
	outsider func(key []byte, owner encoding.OwnerReference)
	inside   map[string]bool            // keys of needed objects that are selected, or that API servers make
	outside  map[string]*archive.Needed // the others, by key; a missing owner by key and UID
	queue    []string                   // keys of outside whose needs are unknown so far
	unread   int                        // objects with unknown needs
}

// find finds the needs of the selected objects and the needs of these, and adds them to the
// selection if they are taken.
func (n *needs) find() error {
	n.inside, n.outside = map[string]bool{}, map[string]*archive.Needed{}
	storages, err := n.view.Storages(n.ctx)
	if err != nil {
		return err
	}
	n.finder = objects.NewFinder(n.view, n.types, storages)
	first, why := "", error(nil)
	selected := func(e *transform.Entry) (*naming, bool) {
		if !n.selected.Has(e.Key) {
			return nil, false
		}
		return n.look(e)
	}
	err = stream.Each(transform.Visit(n.ctx, n.view, nil, selected), func(one *naming) error {
		if one.err != nil {
			if n.unread++; n.unread == 1 {
				first, why = string(one.at), one.err
			}
		}
		return cmp.Or(n.follow(one), n.followOwners(one, true))
	})
	if err == nil {
		err = n.bindings()
	}
	if err == nil {
		err = n.followQueue()
	}
	if n.unread > 0 {
		n.view.Raise(first, codeOwnersUnread.Because("owners and needs of objects are unknown: %d; the first: %v",
			n.unread, why))
	}
	for _, one := range n.outside {
		if n.takes && one.Is != archive.Missing {
			n.selected.Add([]byte(one.Key))
			one.Is = archive.Taken
		}
	}
	return err
}

// followQueue follows the needs of needed objects.
func (n *needs) followQueue() error {
	for len(n.queue) > 0 {
		e, err := n.view.Get(n.ctx, []byte(n.queue[0]))
		if err != nil {
			return err
		}
		n.queue = n.queue[1:]
		one, is := n.look(e)
		if !is {
			continue
		}
		if err := cmp.Or(n.follow(one), n.followOwners(one, false)); err != nil {
			return err
		}
	}
	return nil
}

// naming is an object with the objects that it names.
type naming struct {
	at  []byte
	key keys.Key
	objects.Named
	err error // why some of them are unknown
}

// look reads the needs and owners of an object. Concurrent calls are allowed.
func (n *needs) look(e *transform.Entry) (*naming, bool) {
	key, err := e.ParseKey()
	t := n.types.Of(key.Resource)
	if err != nil || t == nil || keys.IsRecord(key.Resource) {
		return nil, false
	}
	one := &naming{at: e.Key, key: key}
	one.Named, one.err = objects.NamedBy(e, t)
	return one, true
}

// bindings adds the ClusterRoleBindings of selected ServiceAccounts.
func (n *needs) bindings() error {
	t := n.types.Of(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"})
	return stream.Each(n.view.Entries(n.ctx, t, inspect.Selection{}), func(e *transform.Entry) error {
		one, is := n.look(e)
		if !is || one.Made || n.selected.Has(e.Key) {
			return nil
		}
		for _, need := range one.Needs {
			if need.Resource.Resource != "serviceaccounts" {
				continue
			}
			account, found, err := n.finder.Get(n.ctx, one.key.Prefix, n.types.Of(need.Resource), need.Namespace,
				need.Name)
			if err != nil {
				return err
			}
			if found != nil && n.selected.Has(found.Key) {
				n.add(string(e.Key), account, false, archive.InFile)
			}
		}
		return nil
	})
}

// follow adds the needs of an object.
func (n *needs) follow(one *naming) error {
	for _, need := range one.Needs {
		t := n.types.Of(need.Resource)
		if t == nil || t.Namespaced && need.Namespace == "" {
			continue // no server can find it
		}
		key, e, err := n.finder.Get(n.ctx, one.key.Prefix, t, need.Namespace, need.Name)
		switch {
		case err != nil:
			return err
		case n.inside[key]:
		case n.outside[key] != nil:
			n.add(key, string(one.at), false, "")
		case e == nil:
			if !need.Optional {
				n.add(key, string(one.at), false, archive.Missing)
			}
		case n.selected.Has(e.Key) || n.isMade(e):
			n.inside[key] = true
		default:
			n.add(key, string(one.at), false, archive.InFile)
		}
	}
	return nil
}

// isMade reports whether an API server creates the object at its start.
func (n *needs) isMade(e *transform.Entry) bool {
	one, is := n.look(e)
	return is && one.Made
}

// followOwners adds the owners of an object.
func (n *needs) followOwners(one *naming, selected bool) error {
	for _, ref := range one.Owners {
		key, e, err := n.finder.Owner(n.ctx, one.key, ref)
		switch {
		case err != nil:
			return err
		case key == "":
			continue
		case e == nil: // the garbage collector of IN deletes the object too
			n.add(key+" "+ref.UID, string(one.at), true, archive.Missing)
			n.outside[key+" "+ref.UID].Key = key
			continue
		case n.selected.Has(e.Key):
			continue
		}
		n.add(key, string(one.at), true, archive.InFile)
		if selected && !n.takes {
			n.outsider(one.at, ref)
		}
	}
	return nil
}

// add adds a needed object, or one more object that needs it.
func (n *needs) add(key, by string, owner bool, is archive.State) {
	one := n.outside[key]
	if one == nil {
		one = &archive.Needed{Key: key, By: by, Is: is}
		n.outside[key] = one
		if is == archive.InFile {
			n.queue = append(n.queue, key)
		}
	}
	one.Objects++
	one.Owner = one.Owner || owner
}

// took reports whether a record is taken only because it is needed.
func (n *needs) took(key []byte) bool {
	one := n.outside[string(key)]
	return one != nil && one.Is == archive.Taken
}

// section returns the section of the report.
func (n *needs) section() *Needs {
	out := &Needs{Needs: []archive.Needed{}}
	for _, key := range slices.Sorted(maps.Keys(n.outside)) {
		out.Needs = append(out.Needs, *n.outside[key])
	}
	return out
}
