package objects

import (
	"context"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// EditOwners stages an object with its owner references edited, and lists the changes in the
// report. Once all are edited, accept is asked whether to go on; nil accepts. An object whose
// references cannot be read is reported, and stays as it is.
func EditOwners(ctx context.Context, v *transform.View, e *transform.Entry,
	edit func(encoding.OwnerReference) (encoding.OwnerReference, bool), accept func() bool,
) error {
	var changes [][2]encoding.OwnerReference
	out, changed, err := encoding.EditOwnerReferences(e.Value, func(from encoding.OwnerReference) (encoding.OwnerReference, bool) {
		to, changed := edit(from)
		if changed {
			changes = append(changes, [2]encoding.OwnerReference{from, to})
		}
		return to, changed
	})
	if e.Undecryptable != nil {
		err = e.Undecryptable
	}
	if err != nil {
		v.Raise(string(e.Key), transform.Unreadable(err).Code.Because("owner references in it cannot be seen: %v", err))
		return nil
	}
	if accept != nil && !accept() || changed == 0 {
		return nil
	}
	staged, err := v.Derive(ctx, e.Key, e.Key, out)
	if staged {
		for _, c := range changes {
			v.Report().AddReference(string(e.Key), c[0], c[1])
		}
	}
	return err
}
