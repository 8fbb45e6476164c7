// Package renamenode gives nodes other names, in their own records and in those that refer to them.
//
// Invariants:
//
//   - A record that does not contain the old name of a node stays as it is, and is not decoded.
//   - A name is replaced only in a field that is known to name a node. All else that contains the
//     old name is reported by key and field; Events are not, which name the past.
//   - UIDs stay: the garbage collector finds each owner under its new name.
//   - Names are exchanged at once: a=b with b=a swaps two nodes.
package renamenode
