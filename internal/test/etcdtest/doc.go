// Package etcdtest gives tests a real etcd: an embedded server, the restore and the status of
// etcdutl's library, and snapshots made from a few lines of text. It is test support and links the
// etcd server; nothing that ships imports it.
//
// Invariants:
//   - Nothing here writes to a snapshot it was given: Restore and StatusOf work on copies, and
//     bytes and modification time of the original stay.
//   - Servers listen on loopback only, on ports that were free; a lost race for a port is retried,
//     so packages may be tested side by side.
//   - Everything lives in the test's temporary folder and ends with the test.
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
