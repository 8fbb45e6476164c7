package redact

import (
	"errors"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Value reports whether the raw bytes stored under key must be hidden: objects that Object would
// change, everything stored among credentials, bootstrap keys of k3s, and unreadable values with
// the shape of a secret. Values that are encrypted at rest may be shown.
func Value(key, raw []byte) bool {
	if keys.IsBootstrap(key) || keys.HoldsCredentials(key) && encoding.Detect(raw) != encoding.FormatEncrypted {
		return true
	}
	content, err := native.Decode(raw)
	switch {
	case err == nil:
		return Object(key, content)
	case errors.Is(err, encoding.ErrEncrypted):
		return false
	}
	if v, err := encoding.Parse(raw); err == nil && v.GVK.Group == "" && v.GVK.Kind == "Secret" { // it does not decode
		return true
	}
	return holdsSecret(string(raw))
}
