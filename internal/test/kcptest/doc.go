// Package kcptest gives tests the recorded snapshots of testdata/kcp and testdata/kcp-claims (see
// testdata/README.md), and files made from them: edited through a real etcd, after kcp's own live
// migration, of a kcp in one process, of a shard with thousands of logical clusters.
//
// Every file is the test's own copy in its temporary folder.
package kcptest
