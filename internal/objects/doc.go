// Package objects chooses the objects of a command line, finds owners and dependents, and predicts
// the actions of controllers on objects after a restore.
//
// Invariants:
//
//   - A command line is parsed like kubectl's: TYPE[/NAME], names, namespaces and selectors; and
//     --where, an expression of CEL.
//   - An object without a result of a selector or of --where is reported, and not chosen. A
//     missing name is reported.
//   - Chosen objects come in the order of the named types, then in the order of the snapshot.
//   - Owners are found like in k8s.io/kubernetes pkg/controller/garbagecollector.
//   - No value of a Secret is in a finding.
package objects
