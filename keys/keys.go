package keys

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key is a parsed etcd key. Fields that the layout does not have are empty.
type Key struct {
	Prefix    string               // the storage prefix (--etcd-prefix), without trailing slash: "/registry"
	Resource  schema.GroupResource // as the API names it: "nodes", "deployments.apps"
	Identity  string               // kcp: the identity hash of the APIExport of the type
	Custom    bool                 // kcp: an object of a CustomResourceDefinition, marked "customresources"
	Shard     string               // kcp: the shard whose object a cache server holds
	Cluster   string               // kcp: the logical cluster
	Namespace string               // "" for cluster-scoped objects
	Name      string
}

// Layout is how objects are laid out under keys.
type Layout interface {
	// Parse returns the parts of a key. An error wraps ErrUnknownKey and quotes the key.
	Parse(key []byte) (Key, error)
	// Format is the inverse of Parse, byte for byte. The prefix is the layout's own, so that a Key
	// of another layout moves to this one.
	Format(key Key) []byte
	// Dirs returns the beginnings, each with its trailing slash, of all keys of a resource. A key
	// that begins with one of them may still be of another resource.
	Dirs(gr schema.GroupResource) [][]byte
}

// ErrUnknownKey is returned by Parse for a key that no API server of that layout writes, or that
// lies below another prefix.
var ErrUnknownKey = errors.New("not a key of this layout")

// KeyError is the error of Parse. It wraps ErrUnknownKey.
type KeyError struct {
	Reason string // why no layout has the key
	key    string // its beginning
	more   int    // bytes of it that are left out
}

func (e *KeyError) Error() string {
	more := ""
	if e.more > 0 {
		more = fmt.Sprintf(" and %d bytes more", e.more)
	}
	return fmt.Sprintf("key %q%s: %v: %s", e.key, more, ErrUnknownKey, e.Reason)
}

func (e *KeyError) Unwrap() error { return ErrUnknownKey }

// unknown is ErrUnknownKey for key, quoted in part: a hostile key may be megabytes long.
func unknown(key []byte, format string, args ...any) error {
	const most = 512
	shown := key[:min(len(key), most)]
	return &KeyError{Reason: fmt.Sprintf(format, args...), key: string(shown), more: len(key) - len(shown)}
}
