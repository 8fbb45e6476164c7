// Package kubectl runs commands of kubectl, linked from its module, on a server in this process.
//
// Invariants:
//
//   - Every command of kubectl is either served or refused with a sentence; a test walks kubectl's
//     own tree of commands and flags.
//   - A refused command does nothing: it does not even parse its flags.
//   - No kubeconfig is read, nothing is written to disk, and no port is opened.
//   - Nothing here ends the process: what kubectl calls fatal is returned as an error.
package kubectl
