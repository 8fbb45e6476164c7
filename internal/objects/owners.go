package objects

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform"
)

// UID is the hash of a UID. Among ten million, two collide once in 10^14 files.
type UID [12]byte

// ToUID returns the hash of a UID.
func ToUID[T string | []byte](text T) UID {
	sum := sha256.Sum256([]byte(text))
	return UID(sum[:12])
}

// MintUID returns a new UID: a version 4 UUID in form, but derived from input digest and key, so
// that a second run writes the same bytes.
func MintUID(digest [32]byte, key []byte) string {
	h := sha256.New()
	h.Write([]byte("etcdshift uid\x00"))
	h.Write(digest[:])
	h.Write(key)
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // RFC 4122 variant
	return id.String()
}

// EditOwners stages an object with its owner references edited, and lists the changes in the
// report. After all edits, accept decides whether to continue; nil accepts. An object with
// unreadable references is reported, and stays unchanged.
func EditOwners(ctx context.Context, v *transform.View, e *transform.Entry,
	edit func(encoding.OwnerReference) (encoding.OwnerReference, bool), accept func() bool,
) error {
	var changes [][2]encoding.OwnerReference
	out, changed, err := encoding.EditOwnerReferences(e.Value,
		func(from encoding.OwnerReference) (encoding.OwnerReference, bool) {
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

// CountOf returns the count of an object's kind in a report.
func CountOf(r *transform.Report, o *inspect.Object) *transform.KindCount {
	apiVersion, _ := o.Content["apiVersion"].(string)
	i := slices.IndexFunc(r.Kinds, func(k transform.KindCount) bool {
		return k.Kind == o.Type.Kind &&
			k.From == apiVersion
	})
	if i < 0 {
		i, r.Kinds = len(r.Kinds), append(r.Kinds, transform.KindCount{Kind: o.Type.Kind, From: apiVersion,
			To: apiVersion})
	}
	return &r.Kinds[i]
}
