// Package kcptest gives tests the recorded snapshots of a kcp, and what such files become: edited through a real etcd, after
// kcp's own live migration, of a kcp in one process, of a shard with thousands of logical clusters. It is test support;
// nothing that ships imports it.
//
// Invariants:
//
//   - Every file is the test's own copy in its temporary folder.
//   - What a file was made of is testdata/kcp or testdata/kcp-claims, of which testdata/README.md says what is in it; whatever is added is said by the function
//     that adds it.
package kcptest
