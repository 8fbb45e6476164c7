package transform

import (
	"time"

	"github.com/etcdshift/etcdshift/encoding"
)

// creationTime is the creationTimestamp of a stored object, zero where there is none or it cannot be read: a value that is
// no object must not keep a time from being found in the others.
func creationTime(value []byte) time.Time {
	m, err := encoding.ReadMeta(value)
	if err != nil {
		return time.Time{}
	}
	return m.CreationTimestamp
}
