// Package kcp finds the logical clusters of kcp in a snapshot: their keys, their place in the tree
// of workspaces, the types that they bind, and the definitions and identities of these types.
// Survey compares the files of several shards and their cache.
//
// Invariants, each with a test:
//
//   - OneOwner: each key of a storage of kcp belongs to exactly one logical cluster, or is unknown.
//   - LivesHere: a logical cluster lives on a shard if the key of its LogicalCluster is there, with
//     any value, or if the name is system:*, which every shard has. All other keys are orphans.
//   - NothingGuessed: fields of an undecryptable or damaged value stay empty; the value is a
//     problem of the cluster.
//   - KeyMismatch: a record belongs to the logical cluster of its key. A value that names another
//     logical cluster is a problem, without other effect.
//   - ReadsNoOtherKind: Read decrypts only values of the few kinds that describe logical clusters.
//     ReadChecked and Checking decrypt all.
//   - Determinism: the same file gives the same result, in the same order.
//
// Sources: kcp pkg/reconciler/core/logicalcluster, pkg/reconciler/tenancy/workspace,
// pkg/reconciler/apis/apibinding and pkg/cache, as of kcp dac74f5955f1.
package kcp

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

// File is the content of the storages of kcp in one snapshot.
type File struct {
	Layouts  keys.Layouts
	Storages []keys.Storage // all storages of the file, of kcp or not, except named prefixes without keys
	Shards   []*Shard       // a Shard for each storage of keys.FlavourKCPShard, in the order of Storages
	Caches   []*Cache       // a Cache for each storage of keys.FlavourKCPCache, in the order of Storages
	// keys of no logical cluster, in revision order; including the API server's compact_rev_key
	Unknown []Unknown
	Others  []Other // contents of storages that are not kcp's, in the order of Storages
}

// Other is a storage of another layout.
type Other struct {
	keys.Storage
	Amount
}

// Unknown is a key of no logical cluster.
type Unknown struct {
	Key      string `json:"key"`
	KeyBytes []byte `json:"keyBytes,omitempty"` // in base64, for a key that is not UTF-8
	Bytes    int64  `json:"bytes"`              // of key and value
	Reason   string `json:"reason"`
	Expected bool   `json:"expected"` // a key of etcd or the API server itself, which is no sign of a fault
}

// Shard is the storage of one shard.
type Shard struct {
	Prefix string // of the storage, "/registry"
	// Name is core.kcp.io/shard on the LogicalCluster of system:shard; "" if missing.
	Name string
	// Partial means that the LogicalCluster of system:shard is missing, as in an archive or an etcd
	// for single types (--etcd-servers-overrides). Orphans may live on the shard to which the
	// storage belongs.
	Partial     bool
	Clusters    []*Cluster        // living on the shard, by name
	Orphans     []*Orphan         // keys of logical clusters that do not live on the shard, by name
	Definitions []*Definition     // of system:bound-crds, by UID
	System      []*Definition     // of system:system-crds, by Resource
	Registered  []RegisteredShard // the Shard objects, only on the root shard, by name
	clusters    map[string]*Cluster
	orphans     map[string]*Orphan
	definitions map[string]*Definition
	children    map[string][]*Cluster
	paths       map[string]*Cluster // by kcp.io/path; nil for a path of several clusters
	// WorkspaceIdentity is the identity of the type of Workspaces; "" if unknown.
	WorkspaceIdentity string
}

// Amount counts records.
type Amount struct {
	Keys  int   `json:"keys"`
	Bytes int64 `json:"bytes"` // of live keys and stored values
}

// Records are the records of one logical cluster in a shard or a cache.
type Records struct {
	Amount
	Resources []Resource
	Problems  []finding.Finding // in revision order
	// keys of unreadable LogicalClusters and APIBindings, which would name the needs of the logical
	// cluster
	Hidden map[string]bool
	// Undecryptable counts the undecryptable records among the records that had to be decrypted.
	Undecryptable int
	tally         map[Resource]*Amount // by Resource without Amount; only during the pass
}

// Cluster is a logical cluster that lives on a shard.
type Cluster struct {
	Name string
	Records
	System      bool   // system:* and root: parts of kcp itself
	Path        string // kcp.io/path, "root:org:team"; "" if not in the LogicalCluster
	Phase       string // "Ready"
	UID         string // of the LogicalCluster
	ShardName   string // core.kcp.io/shard: the shard on which the logical cluster claims to live
	Owner       *Owner // the owning object, usually a Workspace of its parent; nil for none
	Terminating string
	Migrating   string // internal.kcp.io/migrating: the live migration of the logical cluster; "" for none
	Inactive    bool   // core.kcp.io/inactive, or the annotation's older name
	Bindings    []Binding
	Exports     []Export
	Workspaces  []Workspace // in the logical cluster: its children, on any shard
}

// Owner is the object that owns a LogicalCluster.
type Owner struct {
	APIVersion string `json:"apiVersion"` // "tenancy.kcp.io/v1alpha1"
	Resource   string `json:"resource"`   // "workspaces"
	Cluster    string `json:"cluster"`    // the logical cluster of the owner
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Resource counts the objects of one type and identity in a logical cluster.
type Resource struct {
	Resource TypeName `json:"resource"`
	Identity string   `json:"identity,omitempty"` // of the APIExport, 64 hexadecimal digits; "" for none
	Custom   bool     `json:"custom,omitempty"`   // of a CustomResourceDefinition without an APIExport
	Amount
}

// TypeName is a type, in JSON "widgets.example.dev".
type TypeName schema.GroupResource

func (t TypeName) String() string { return schema.GroupResource(t).String() }

// MarshalText implements encoding.TextMarshaler.
func (t TypeName) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Binding is an APIBinding.
type Binding struct {
	Name   string
	Export ExportRef
	Bound  []Bound
}

// ExportRef names an APIExport.
type ExportRef struct {
	Cluster string `json:"cluster"` // status.apiExportClusterName; "" if unresolved
	Path    string `json:"path"`    // spec.reference.export.path, as the user wrote it
	Name    string `json:"name"`
}

// Bound is a type that an APIBinding binds.
type Bound struct {
	Resource        schema.GroupResource
	Schema          string // name of the APIResourceSchema
	UID             string // of the APIResourceSchema: the name of its definition in system:bound-crds
	Identity        string // 64 hexadecimal digits
	StorageVersions []string
	// Virtual means that a virtual workspace serves the type and no objects of the type are stored.
	Virtual bool
}

// Export is an APIExport.
type Export struct {
	Cluster  string `json:"cluster"`
	Name     string `json:"name"`
	Identity string `json:"identity"` // status.identityHash; "" for none
}

// Workspace is a Workspace in a logical cluster.
type Workspace struct {
	Key      string // as stored
	Name     string
	Identity string // of the APIExport of the type
	UID      string
	// spec.cluster: the logical cluster of the Workspace; "" if not scheduled or unreadable
	Cluster   string
	ShardName string // core.kcp.io/shard: the shard of the logical cluster, according to the Workspace
	Region    string // its label
}

// Definition is a CustomResourceDefinition in kcp's own logical clusters.
type Definition struct {
	Key            string // as stored
	Name           string // in system:bound-crds the UID of an APIResourceSchema
	Resource       schema.GroupResource
	Schema         ExportRef // in system:bound-crds: cluster and name of the APIResourceSchema
	Versions       []string  // spec.versions
	StoredVersions []string  // status.storedVersions
	Problem        string    // why the definition is unreadable: then only Key and Name are set
}

// RegisteredShard is a Shard object.
type RegisteredShard struct {
	Name        string
	Region      string // label "region"; "" for none
	ExternalURL string
}

// Orphan has the records of a logical cluster on a shard where the logical cluster does not live.
type Orphan struct {
	Name string
	Records
	Keys []string // as stored, in revision order
}

// Cache is the storage of one cache server.
type Cache struct {
	Prefix     string
	Copies     []*Copy           // by shard and cluster, without the cache server's own definitions
	Exports    []Export          // copied APIExports
	Registered []RegisteredShard // copied Shards
	Own        Records           // the cache server's own definitions
}

// Copy has the records of one logical cluster in a cache, as written by a shard.
type Copy struct {
	Prefix, Shard, Cluster string // Prefix is of the cache
	Records
	Keys    []string // as stored, in revision order
	Exports []string // the names of its APIExports, from the keys only
}

// IsSystem reports whether a logical cluster is a part of kcp itself.
func IsSystem(name string) bool { return name == "root" || strings.HasPrefix(name, "system:") }

// Cluster returns the logical cluster with the given name that lives on the shard; nil for none.
func (s *Shard) Cluster(name string) *Cluster { return s.clusters[name] }

// Home returns the logical cluster on the shard that owns keys of the given name: the cluster with
// that name, or the only one with that kcp.io/path, since early versions of kcp stored some keys
// under the path. nil for none.
func (s *Shard) Home(name string) *Cluster {
	return cmp.Or(s.clusters[name], s.paths[name])
}

// Orphan returns the orphans of the logical cluster; nil for none.
func (s *Shard) Orphan(name string) *Orphan { return s.orphans[name] }

// Lives reports whether a logical cluster lives on any shard of the file.
func (f *File) Lives(name string) bool {
	return slices.ContainsFunc(f.Shards, func(s *Shard) bool { return s.Cluster(name) != nil })
}

// Children returns the logical clusters on the shard whose owner is in cluster name, by name.
func (s *Shard) Children(name string) []*Cluster { return slices.Clone(s.children[name]) }

// Definition returns the bound definition with the given UID; nil for none.
func (s *Shard) Definition(uid string) *Definition { return s.definitions[uid] }

// Bound yields the bound types, each with its APIBinding.
func (c *Cluster) Bound() iter.Seq2[*Binding, Bound] {
	return func(yield func(*Binding, Bound) bool) {
		for i := range c.Bindings {
			for _, bound := range c.Bindings[i].Bound {
				if !yield(&c.Bindings[i], bound) {
					return
				}
			}
		}
	}
}

// Relied returns the types that c stores or binds under each identity, bound types last.
func (c *Cluster) Relied() map[string][]string {
	types := map[string][]string{}
	for _, r := range c.Resources {
		types[r.Identity] = append(types[r.Identity], r.Resource.String())
	}
	for _, bound := range c.Bound() {
		if !bound.Virtual {
			types[bound.Identity] = append(types[bound.Identity], bound.Resource.String())
		}
	}
	delete(types, "")
	return types
}

// Unread returns why the LogicalCluster of c cannot be read; the zero Finding for none.
func (s *Shard) Unread(c *Cluster) finding.Finding {
	return c.Unread()[string(LogicalClusterKey(s.Prefix, c.Name))]
}

// Unread returns the problems of unreadable records, by key.
func (r *Records) Unread() map[string]finding.Finding {
	unread := map[string]finding.Finding{}
	for _, p := range r.Problems {
		if p.Code != CodeKeyMismatch {
			unread[p.Key] = p
		}
	}
	return unread
}

// Knows reports whether an identity belongs to an APIExport of the file, or to an APIBinding of a
// logical cluster that is not moved.
func (f *File) Knows(identity string, moved map[string]bool) bool {
	exports := func(all []Export) bool {
		return slices.ContainsFunc(all, func(e Export) bool { return e.Identity == identity })
	}
	for _, s := range f.Shards {
		for _, c := range s.Clusters {
			if exports(c.Exports) {
				return true
			}
			for _, bound := range c.Bound() {
				if bound.Identity == identity && !moved[c.Name] {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(f.Caches, func(c *Cache) bool { return exports(c.Exports) })
}

// Copies returns the copies in all caches of the file.
func (f *File) Copies() (all []*Copy) {
	for _, c := range f.Caches {
		all = append(all, c.Copies...)
	}
	return all
}

// Registered returns the Shard objects of the file, and their copies in its caches.
func (f *File) Registered() (all []RegisteredShard) {
	for _, s := range f.Shards {
		all = append(all, s.Registered...)
	}
	for _, c := range f.Caches {
		all = append(all, c.Registered...)
	}
	return all
}
