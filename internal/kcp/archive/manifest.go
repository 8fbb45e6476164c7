// Package archive is the file format that carries logical clusters of kcp from one shard to
// another: an etcd snapshot with their records only, and a manifest. docs/reference/formats.md
// specifies it.
//
// Invariants, each with a test of the same name:
//
//   - SameDigestInAnyOrder: Digest does not depend on the order of records, on their revisions, nor
//     on the storage prefix: a shard that has imported the records has the same digest.
//   - EveryChangeFound: Check fails after any change of an archive: a byte of a key, a value or the
//     manifest, a revision, a version, a lease, a record more or less. It finds accidents, not
//     someone who changes the manifest as well.
//   - HostileManifest: a manifest of any size and content ends in an error or is sound: its counts
//     add up, its folders do not overlap, its text is printable, and etcdshift would write it so.
//   - ReadsWithoutKeys: Check assigns records by the folders of the manifest, without parsing keys.
package archive

// The head of a Manifest. Any change of the format, even an additional field, changes Format.
const (
	APIVersion = "etcdshift/v1"
	Kind       = "LogicalClusterArchive"
	Format     = 1
)

// Manifest describes an archive. It is the note "manifest" of the file, as JSON; the note
// "manifest.sha256" is the SHA-256 of that, 64 hexadecimal digits. Lists are in ascending order of
// their elements' names.
type Manifest struct {
	APIVersion string    `json:"apiVersion"` // "etcdshift/v1"
	Kind       string    `json:"kind"`       // "LogicalClusterArchive"
	Format     int       `json:"format"`     // of the file: 1
	Name       string    `json:"name"`       // the logical cluster that was asked for; the others are its children
	Origin     Origin    `json:"origin"`
	Clusters   []Cluster `json:"clusters"`
	// Definitions are the CustomResourceDefinitions of system:bound-crds that the clusters need;
	// Missing are those that the origin did not have.
	Definitions []Definition `json:"definitions"`
	Missing     []Definition `json:"missing"`
	Identities  []Identity   `json:"identities"`
	Leases      []Lease      `json:"leases"`
	Encryption  []Encryption `json:"encryption"` // by what values are encrypted at rest, as they were on the origin
	Total       Sum          `json:"total"`      // of all records
	// of all records too, but of all that is stored of them: by Rest, not by Digest
	AsStored Sum `json:"asStored"`
}

// Origin is the shard that an archive was made of. Its Rest and Manifest.AsStored are made with
// Rest, all other sums with Digest.
type Origin struct {
	Shard    string `json:"shard"`  // its name; "" where the file did not say
	Prefix   string `json:"prefix"` // of its storage, "/registry": keys in the archive begin with it
	SHA256   string `json:"sha256"` // of the snapshot file
	Revision int64  `json:"revision"`
	// every live record of the file but those of Clusters and their copies in a cache of the same file
	Rest Sum `json:"rest"`
}

// Sum counts records and has their digest; see Digest.
type Sum struct {
	Keys   int    `json:"keys"`
	Bytes  int64  `json:"bytes"` // of keys and values as they are stored
	SHA256 string `json:"sha256"`
}

// Cluster is a logical cluster in an archive.
type Cluster struct {
	Name      string     `json:"name"`
	Path      string     `json:"path"`
	UID       string     `json:"uid"`   // of the LogicalCluster
	Shard     string     `json:"shard"` // core.kcp.io/shard, as it was
	Owner     Owner      `json:"owner"`
	Sum                  // of its records
	Resources []Resource `json:"resources"`
}

// Owner is the Workspace that a logical cluster belongs to; empty for none.
type Owner struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	UID     string `json:"uid"`
}

// Resource is the records of one type in one logical cluster.
type Resource struct {
	Resource string `json:"resource"`           // "widgets.example.dev", "configmaps"
	Identity string `json:"identity,omitempty"` // of the APIExport
	Custom   bool   `json:"custom,omitempty"`   // of a CustomResourceDefinition that no APIExport exports
	// Dir begins the keys behind the storage prefix: "/core/configmaps/2y3qvnqz5ga11oc4/".
	Dir string `json:"dir"`
	Sum
}

// Definition is a bound CustomResourceDefinition.
type Definition struct {
	UID            string   `json:"uid"`           // its name
	Key            string   `json:"key,omitempty"` // behind the storage prefix; "" for one that is missing
	Resource       string   `json:"resource"`
	Schema         string   `json:"schema"` // name of the APIResourceSchema
	StoredVersions []string `json:"storedVersions"`
	SHA256         string   `json:"sha256,omitempty"` // of the stored value; "" for one that is missing
}

// Identity is the identity of an APIExport that the clusters rely on.
type Identity struct {
	Hash      string   `json:"hash"`      // 64 hexadecimal digits
	Resources []string `json:"resources"` // that are bound by it, or stored under it
	Exports   []Export `json:"exports"`   // as bindings name them
	Own       bool     `json:"own"`       // one of the clusters exports it
}

// Export names an APIExport.
type Export struct {
	Cluster string `json:"cluster"`        // that it lies in; "" where a binding is not resolved yet
	Path    string `json:"path,omitempty"` // of that, where it is known
	Name    string `json:"name"`
}

// Lease is a lease of records.
type Lease struct {
	ID   string `json:"id"`  // lower-case hex, as etcdctl prints it
	TTL  int64  `json:"ttl"` // seconds; 0 where the origin did not have the lease
	Keys int    `json:"keys"`
}

// Encryption counts values by their encryption.
type Encryption struct {
	Name string `json:"name"` // provider, version and key: "aescbc:v1:key1"
	Keys int    `json:"keys"`
}

// Names returns the names of the logical clusters.
func (m *Manifest) Names() (names []string) {
	for _, c := range m.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// Cluster returns the logical cluster of that name, nil for none.
func (m *Manifest) Cluster(name string) *Cluster {
	for i := range m.Clusters {
		if m.Clusters[i].Name == name {
			return &m.Clusters[i]
		}
	}
	return nil
}
