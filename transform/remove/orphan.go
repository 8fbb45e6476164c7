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
	return r.withOwners(func(h *having) error {
		if h.err != nil {
			r.view.Raise(string(h.Key), transform.Unreadable(h.err))
			return nil
		}
		if !slices.ContainsFunc(h.owners, func(id uid) bool { return r.gone[id] }) {
			return nil
		}
		return r.release(h.Entry)
	})
}

// release removes deleted owners from an object.
func (r *run) release(e *transform.Entry) error {
	content, err := encoding.Get(e.Value, "metadata", "ownerReferences")
	if err != nil {
		r.view.Raise(string(e.Key), transform.Unreadable(err))
		return nil
	}
	var stay []any
	refs, _ := content.([]any)
	for _, ref := range refs {
		fields, _ := ref.(map[string]any)
		if id, _ := fields["uid"].(string); !r.gone[toUID([]byte(id))] {
			stay = append(stay, ref)
		}
	}
	var owners any
	if len(stay) > 0 {
		owners = stay
	}
	value, err := encoding.Set(e.Value, owners, "metadata", "ownerReferences")
	if err != nil {
		r.view.Raise(string(e.Key), finding.Undecodable.Because("%v", err))
		return nil
	}
	r.section.Orphaned++
	return r.view.Put(r.ctx, e.Key, value, "deleted owners removed")
}
