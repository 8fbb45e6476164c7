package calico

import (
	"crypto/sha256"
	"fmt"
	"math/bits"

	"github.com/google/uuid"
)

// ConvertUID turns the UID of a stored v1 record into the one that clients of the aggregated API
// saw, and back: it reverses the bits of each byte but 6 and 8, which hold the UUID's version and
// variant. It takes every spelling of a UUID and returns the canonical one
// (libcalico-go/lib/backend/k8s/conversion).
func ConvertUID(uid string) (string, error) {
	id, err := parseUID(uid)
	if err != nil {
		return "", err
	}
	return seenUID(id).String(), nil
}

func parseUID(uid string) (uuid.UUID, error) {
	id, err := uuid.Parse(uid)
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("uid %q: not a UUID", uid)
	}
	return id, nil
}

func seenUID(stored uuid.UUID) uuid.UUID {
	for i, b := range stored {
		if i != 6 && i != 8 {
			stored[i] = bits.Reverse8(b)
		}
	}
	return stored
}

// mintUID makes a new UID: a version 4 UUID in form, but the same for the same input and key, so
// that a second run writes the same bytes.
func mintUID(digest [32]byte, key []byte) string {
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
