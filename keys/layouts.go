package keys

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Flavour is the kind of server that writes below a storage prefix.
type Flavour string

// The flavours of a storage prefix.
const (
	FlavourKubernetes Flavour = "kubernetes" // kube-apiserver, also OpenShift's, and compatible servers
	FlavourOpenShift  Flavour = "openshift"  // openshift-apiserver and oauth-apiserver
	FlavourKCPShard   Flavour = "kcp-shard"
	FlavourKCPCache   Flavour = "kcp-cache" // kcp's cache server
	FlavourUnknown    Flavour = "unknown"   // a named prefix without a sign of a flavour; read as Kubernetes
)

// KCP reports whether the flavour is a shard or a cache of kcp.
func (f Flavour) KCP() bool { return f == FlavourKCPShard || f == FlavourKCPCache }

// Layout returns the layout of keys below a prefix of this flavour.
func (f Flavour) Layout(prefix string) Layout {
	switch f {
	case FlavourOpenShift:
		return OpenShift{prefix}
	case FlavourKCPShard:
		return KCPShard{prefix}
	case FlavourKCPCache:
		return KCPCache{prefix}
	}
	return Kubernetes{prefix}
}

// Storage is a storage prefix and the layout below it.
type Storage struct {
	Prefix  string  `json:"prefix"` // without trailing slash: "/registry"
	Flavour Flavour `json:"flavour"`
	Layout  Layout  `json:"-"`
}

// Layouts holds the storages of one file. The zero value has none. Layouts is safe for concurrent
// use.
type Layouts struct {
	all       []Storage      // in the order of Storages
	byPrefix  map[string]int // indexes of all; hidden for storages left out by Only
	longest   int            // bytes of the longest prefix
	openshift bool
}

// NewLayouts collects storages. The first storage of a prefix counts.
func NewLayouts(storages ...Storage) Layouts {
	l := Layouts{byPrefix: map[string]int{}}
	for _, s := range storages {
		if _, twice := l.byPrefix[s.Prefix]; twice {
			continue
		}
		if s.Layout == nil {
			s.Layout = s.Flavour.Layout(s.Prefix)
		}
		l.byPrefix[s.Prefix] = len(l.all)
		l.all = append(l.all, s)
		l.longest = max(l.longest, len(s.Prefix))
		l.openshift = l.openshift || s.Flavour == FlavourOpenShift
	}
	return l
}

// hidden is the index of a storage left out by Only.
const hidden = -1

// Only returns l with only the storages of these prefixes. A key below another, longer prefix of l
// still belongs to that prefix, and Of does not find the key.
func (l Layouts) Only(prefixes ...string) Layouts {
	out := NewLayouts(slices.DeleteFunc(l.Storages(),
		func(s Storage) bool { return !slices.Contains(prefixes, s.Prefix) })...)
	out.openshift = l.openshift
	for _, s := range l.all {
		if _, is := out.byPrefix[s.Prefix]; !is {
			out.byPrefix[s.Prefix] = hidden
			out.longest = max(out.longest, len(s.Prefix))
		}
	}
	return out
}

// LeftOut lists the prefixes left out by Only, sorted.
func (l Layouts) LeftOut() (prefixes []string) {
	for prefix, at := range l.byPrefix {
		if at == hidden {
			prefixes = append(prefixes, prefix)
		}
	}
	slices.Sort(prefixes)
	return prefixes
}

// Storages lists the storages: first the named prefixes, then the found ones in the order of their
// keys.
func (l Layouts) Storages() []Storage { return slices.Clone(l.all) }

// Of returns the storage with the longest prefix of key, even if its layout cannot parse the key.
func (l Layouts) Of(key []byte) (Storage, bool) {
	for end := min(len(key)-1, l.longest); end >= 0; end-- {
		if key[end] != '/' {
			continue
		}
		if i, ok := l.byPrefix[string(key[:end])]; ok {
			if i == hidden {
				return Storage{}, false
			}
			return l.all[i], true
		}
	}
	return Storage{}, false
}

// Parse parses a key with the layout of its storage (see Of). An error wraps ErrUnknownKey.
func (l Layouts) Parse(key []byte) (Key, Layout, error) {
	s, ok := l.Of(key)
	if !ok {
		return Key{}, nil, unknown(key, "under no storage prefix")
	}
	k, err := s.Layout.Parse(key)
	return k, s.Layout, err
}

// Dirs returns the common beginnings of all keys of a resource, in every storage.
func (l Layouts) Dirs(gr schema.GroupResource) [][]byte {
	var out [][]byte
	for _, s := range l.all {
		out = append(out, s.Layout.Dirs(gr)...)
	}
	return out
}

// Flavour returns the flavour of the cluster. A kcp in one process keeps shard and cache in one
// etcd and counts as a shard; a kube-apiserver with OpenShift's servers counts as OpenShift.
func (l Layouts) Flavour() Flavour {
	best := FlavourUnknown
	for _, s := range l.all {
		best = higherFlavour(best, s.Flavour)
	}
	if l.openshift && !best.KCP() {
		return FlavourOpenShift
	}
	return best
}

// higherFlavour returns the flavour of the higher rank.
func higherFlavour(a, b Flavour) Flavour {
	rank := []Flavour{"", FlavourUnknown, FlavourKubernetes, FlavourOpenShift, FlavourKCPCache, FlavourKCPShard}
	if slices.Index(rank, a) < slices.Index(rank, b) {
		return b
	}
	return a
}

// Key is a parsed etcd key. Fields missing from the layout are empty.
type Key struct {
	Prefix    string               // the storage prefix (--etcd-prefix), without trailing slash: "/registry"
	Resource  schema.GroupResource // as the API names it: "nodes", "deployments.apps"
	Identity  string               // kcp: the identity hash of the APIExport of the type
	Custom    bool                 // kcp: an object of a CustomResourceDefinition, marked "customresources"
	Shard     string               // kcp: the origin shard of an object in a cache
	Cluster   string               // kcp: the logical cluster
	Namespace string               // "" for cluster-scoped objects
	Name      string
}

// Layout maps objects to etcd keys.
type Layout interface {
	// Parse returns the parts of a key. An error wraps ErrUnknownKey and quotes the key.
	Parse(key []byte) (Key, error)
	// Format is the inverse of Parse, byte for byte. The result has the prefix of this layout, even
	// for a Key parsed by another layout.
	Format(key Key) []byte
	// Dirs returns the common beginnings of all keys of a resource, each with a trailing slash. A
	// key with one of these beginnings may still belong to another resource.
	Dirs(gr schema.GroupResource) [][]byte
}

// ErrUnknownKey is returned by Parse for a key below another prefix, and for a key that no API
// server of the layout writes.
var ErrUnknownKey = errors.New("not a key of this layout")

// KeyError is the error of Parse. It wraps ErrUnknownKey.
type KeyError struct {
	Reason string // why no layout parses the key
	key    string // beginning of the key
	more   int    // bytes of the key left out
}

func (e *KeyError) Error() string {
	more := ""
	if e.more > 0 {
		more = fmt.Sprintf(" and %d bytes more", e.more)
	}
	return fmt.Sprintf("key %q%s: %v: %s", e.key, more, ErrUnknownKey, e.Reason)
}

func (e *KeyError) Unwrap() error { return ErrUnknownKey }

// unknown returns ErrUnknownKey for key. The error quotes part of the key: a hostile key may be
// megabytes long.
func unknown(key []byte, format string, args ...any) error {
	const most = 512
	shown := key[:min(len(key), most)]
	return &KeyError{Reason: fmt.Sprintf(format, args...), key: string(shown), more: len(key) - len(shown)}
}
