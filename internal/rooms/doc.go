// Package rooms holds a test, and nothing to import: it reads the source of the whole module and
// fails when a package reaches into one it must not know.
//
//	cmd -> transform/* -> transform -> inspect -> {snapshot, keys, encoding/schema -> encoding}
//
// A room may import those to its right, never one to its left or beside it. Besides:
//
//   - internal/publish is a leaf; snapshot, transform and cmd may import it.
//   - No transform imports another. Of transform/kcp, the programs import survey and archive, and
//     none another.
//   - internal holds code that ships without a promise; each package has a line in the table.
//   - internal/test holds servers and fixtures. Only test files import it; it imports any room but
//     cmd.
//   - go.etcd.io/bbolt is imported by snapshot and internal/test/bench only, in tests too.
//   - Only cmd prints, logs or exits.
//   - No function is called init.
//   - A string with the storage prefix "/registry/" stands in keys only.
//
// Test files are free to import what they need and to print; nothing that ships depends on them. A
// new folder needs a line in the table of check_test.go.
package rooms
