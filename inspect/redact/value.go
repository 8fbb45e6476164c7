package redact

import (
	"errors"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Value tells whether the raw bytes that are stored under key must not be shown: those of objects of which Object would take
// something out, of all that lies among credentials, of k3s's bootstrap keys, and anything that could not be looked into and has the shape of a secret. What is
// encrypted at rest may be shown as it is stored.
func Value(key []byte, raw []byte) bool {
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
	if v, err := encoding.Parse(raw); err == nil && v.GVK.Group == "" && v.GVK.Kind == "Secret" { // that does not decode
		return true
	}
	return holdsSecret(string(raw))
}
