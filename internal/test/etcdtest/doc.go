// Package etcdtest provides tests with a real etcd: an embedded server, the restore and the status
// of etcdutl's library, and snapshots built from a few lines of text. It links the etcd server;
// only tests import it.
//
// Invariants:
//   - Given snapshots are never written: Restore and StatusOf work on copies, and bytes and
//     modification time of the original stay.
//   - Servers listen only on loopback, on free ports; a lost race for a port is retried, so
//     packages can be tested concurrently.
//   - All files are in the test's temporary folder, and all servers end with the test.
//
// # Scripts
//
// Build and Run take a script, one command a line; empty lines and lines that start with # are
// skipped. A word is bare (no blanks) or quoted as in Go source, "like\x00this" or `like this`.
//
//	put KEY VALUE [lease=ID]       one Put
//	put KEY size=N [lease=ID]      one Put of Blob(KEY, N); so no value can start with size=
//	del KEY                        one Delete
//	delprefix PREFIX               one range Delete
//	grant ID TTL                   a lease; ID decimal, TTL in seconds
//	compact [REV]                  a finished compaction, at REV or the current revision
//	txn {                          one transaction: puts and deletes
//	  put ...                      that share a main revision
//	  del ...
//	}
package etcdtest
