// Package choose reads which objects the command line of a transform names, as kubectl reads it:
// TYPE[/NAME], names, namespaces and selectors, and --where, an expression of CEL.
//
// Invariants:
//
//   - An object that a selector or --where cannot be asked about is reported, and not chosen.
//   - A name that does not exist is reported.
//   - The order is that of the types as named, then that of the snapshot.
//   - No value of a Secret is in a finding.
package choose
