// Package objects knows which objects a command line names, who owns whom, and what the controllers
// of a cluster do with objects after a restore.
//
// Invariants:
//
//   - A command line is read as kubectl reads it: TYPE[/NAME], names, namespaces and selectors; and
//     --where, an expression of CEL.
//   - An object that a selector or --where cannot be asked about is reported, and not chosen. A
//     name that does not exist is reported.
//   - Chosen objects come in the order of the types as named, then in that of the snapshot.
//   - Owners are found as k8s.io/kubernetes pkg/controller/garbagecollector finds them.
//   - No value of a Secret is in a finding.
package objects
