package remove

import (
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// releaseDependents removes deleted owners from the objects that are left.
func (r *run) releaseDependents() error {
	if len(r.gone) == 0 {
		return nil
	}
	c := r.newCollector()
	return r.withOwners(func(h *having) error {
		if h.err != nil {
			r.view.Raise(string(h.Key), transform.Unreadable(h.err))
			return nil
		}
		if !slices.ContainsFunc(h.owners, func(id uid) bool { return r.gone[id] }) {
			return nil
		}
		return c.release(h.Entry)
	})
}

// release removes deleted owners from an object, and owners that were gone before: the garbage
// collector would have removed those while another one lived; with them alone it would delete the
// object.
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
		if state != ownerGone && !c.gone[toUID([]byte(text("uid")))] {
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
