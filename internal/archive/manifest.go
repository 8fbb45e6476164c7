package archive

// Manifest describes an archive of logical clusters. The manifest is the note "manifest" of the
// file, as JSON; the note "manifest.sha256" is the SHA-256 of that JSON, 64 hexadecimal digits.
// Lists are in ascending order of their elements' names.
type Manifest struct {
	APIVersion string    `json:"apiVersion"` // "etcdshift/v1"
	Kind       string    `json:"kind"`       // "LogicalClusterArchive"
	Format     int       `json:"format"`     // of the file: 1
	Name       string    `json:"name"`       // the requested logical cluster; the others are its children
	Origin     Origin    `json:"origin"`
	Clusters   []Cluster `json:"clusters"`
	// Definitions are the CustomResourceDefinitions of system:bound-crds that the clusters need;
	// Missing are needed definitions that the origin did not have.
	Definitions []Definition `json:"definitions"`
	Missing     []Definition `json:"missing"`
	Identities  []Identity   `json:"identities"`
	Counts
}

// Counts describes all records of an archive.
type Counts struct {
	Leases     []Lease      `json:"leases"`
	Encryption []Encryption `json:"encryption"` // encryption of the values at rest on the origin
	Total      Sum          `json:"total"`      // of all records
	// of all records and all their data: by Rest, not by Digest
	AsStored Sum `json:"asStored"`
}

// Origin is the shard from which an archive was extracted. Origin.Rest and Manifest.AsStored are
// computed with Rest, all other sums with Digest.
type Origin struct {
	Shard    string `json:"shard"`  // its name; "" if not in the file
	Prefix   string `json:"prefix"` // of its storage, "/registry": keys in the archive begin with it
	SHA256   string `json:"sha256"` // of the snapshot file
	Revision int64  `json:"revision"`
	// every live record of the file except the records of Clusters and their copies in a cache of
	// the same file
	Rest Sum `json:"rest"`
}

// Sum is the count and digest of records: see Digest.
type Sum struct {
	Keys   int    `json:"keys"`
	Bytes  int64  `json:"bytes"` // of keys and stored values
	SHA256 string `json:"sha256"`
}

// Cluster is a logical cluster in an archive.
type Cluster struct {
	Name      string     `json:"name"`
	Path      string     `json:"path"`
	UID       string     `json:"uid"`   // of the LogicalCluster
	Shard     string     `json:"shard"` // core.kcp.io/shard on the origin
	Owner     Owner      `json:"owner"`
	Sum                  // of its records
	Resources []Resource `json:"resources"`
}

// Owner is the Workspace that owns a logical cluster; empty for none.
type Owner struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	UID     string `json:"uid"`
}

// Resource has the records of one type in one logical cluster.
type Resource struct {
	Resource string `json:"resource"`           // "widgets.example.dev", "configmaps"
	Identity string `json:"identity,omitempty"` // of the APIExport
	Custom   bool   `json:"custom,omitempty"`   // of a CustomResourceDefinition that no APIExport exports
	// Dir is the beginning of the keys after the storage prefix:
	// "/core/configmaps/2y3qvnqz5ga11oc4/".
	Dir string `json:"dir"`
	Sum
}

// Definition is a bound CustomResourceDefinition.
type Definition struct {
	UID            string   `json:"uid"`           // its name
	Key            string   `json:"key,omitempty"` // without the storage prefix; "" for a missing definition
	Resource       string   `json:"resource"`
	Schema         string   `json:"schema"` // name of the APIResourceSchema
	StoredVersions []string `json:"storedVersions"`
	SHA256         string   `json:"sha256,omitempty"` // of the stored value; "" for a missing definition
}

// Identity is the identity of an APIExport that the clusters depend on.
type Identity struct {
	Hash      string   `json:"hash"`      // 64 hexadecimal digits
	Resources []string `json:"resources"` // bound by the identity, or stored under the identity
	Exports   []Export `json:"exports"`   // named by bindings
	Own       bool     `json:"own"`       // one of the clusters has the APIExport
}

// Export names an APIExport.
type Export struct {
	Cluster string `json:"cluster"`        // of the APIExport; "" for an unresolved binding
	Path    string `json:"path,omitempty"` // of the logical cluster, if known
	Name    string `json:"name"`
}

// Lease is a lease attached to records.
type Lease struct {
	ID   string `json:"id"`  // lower-case hex, as etcdctl prints it
	TTL  int64  `json:"ttl"` // seconds; 0 if the origin did not have the lease
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

// Cluster returns the logical cluster with the given name; nil for none.
func (m *Manifest) Cluster(name string) *Cluster {
	for i := range m.Clusters {
		if m.Clusters[i].Name == name {
			return &m.Clusters[i]
		}
	}
	return nil
}
