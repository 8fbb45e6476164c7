package keys

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key is an etcd key taken apart. Fields a layout has no place for are empty.
type Key struct {
	Prefix    string               // the storage prefix (--etcd-prefix), without trailing slash: "/registry"
	Resource  schema.GroupResource // as the API names it: "nodes", "deployments.apps", "widgets.example.com"
	Identity  string               // kcp: the identity hash of an APIExport, for an object of a type it exports
	Custom    bool                 // kcp: an object of a CustomResourceDefinition, for which "customresources" stands
	Shard     string               // kcp: the shard whose object a cache server holds
	Cluster   string               // kcp: the logical cluster
	Namespace string               // "" for what is cluster-scoped
	Name      string
}

// Layout is one way of laying objects out under keys.
type Layout interface {
	// Parse takes a key apart. An error wraps ErrUnknownKey and quotes the key.
	Parse(key []byte) (Key, error)
	// Format puts a key together. Where Parse returned no error, Format gives back the very same bytes. The prefix is
	// the layout's own, so that a Key found under another layout lands in this one.
	Format(key Key) []byte
	// Dirs returns what the keys of a resource begin with, each with its trailing slash: every key of the resource begins
	// with one of them. A key that does may still be of another resource.
	Dirs(gr schema.GroupResource) [][]byte
}

// ErrUnknownKey is returned by Parse for a key that is not of the layout: one that no API server of that kind writes,
// or under another prefix.
var ErrUnknownKey = errors.New("not a key of this layout")

// KeyError is the error of Parse. It wraps ErrUnknownKey.
type KeyError struct {
	Reason string // why the key is none of the layout
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

// unknown is ErrUnknownKey for key. A hostile key may be megabytes long: quoted is what a person can read.
func unknown(key []byte, format string, args ...any) error {
	const most = 512
	shown := key[:min(len(key), most)]
	return &KeyError{Reason: fmt.Sprintf(format, args...), key: string(shown), more: len(key) - len(shown)}
}
