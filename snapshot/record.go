package snapshot

import "github.com/etcdshift/etcdshift/snapshot/internal/mvcc"

// Revision is the position of a record in etcd's history: Main counts transactions, Sub the
// operations within a transaction. Compare orders revisions in commit order.
type Revision = mvcc.Revision

// Record is an entry of etcd's key bucket: a Put or, with Tombstone set, a deletion, of which only
// Revision and Key are set. Key and Value alias the mapped file: they are valid until Close and
// must not be written to. Key is empty for the record of "etcdutl snapshot restore
// --bump-revision".
//
// CreateRevision is the main revision of the Put that created the key, ModRevision the main
// revision of this Put, Version the number of Puts since the creation, and Lease the ID of a lease,
// 0 for none. FreePage is set for a record that a compaction removed; see [Config].FreePages.
type Record = mvcc.Record
