// Package mvcc knows the entries of etcd's buckets: the records of the key bucket, and the leases,
// alarms, members and numbers of the others. It encodes, decodes and checks single entries, and
// reads no file.
//
// Invariants, each with a test:
//
//   - An encoded record parses to itself, and etcd's protobuf code reads and writes the same.
//   - The messages are those of etcd's own definitions.
//
// Sources: etcd server/storage/mvcc and server/storage/schema, as of etcd v3.7.3.
package mvcc
