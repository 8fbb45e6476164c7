// Package renamenode renames nodes in their own records and in references to them.
//
// Invariants:
//
//   - A record without the old name of a node stays unchanged and is not decoded.
//   - A name is replaced only in fields known to name a node. Other occurrences of the old name are
//     reported by key and field, except in Events, which describe the past.
//   - UIDs stay: the garbage collector finds each owner under its new name.
//   - Names are exchanged simultaneously: a=b with b=a swaps two nodes.
package renamenode
