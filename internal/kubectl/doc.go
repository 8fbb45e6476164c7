// Package kubectl runs kubectl commands, linked from its module, on a server in this process.
//
// Invariants:
//
//   - Every kubectl command is either supported or refused with the reason; a test walks kubectl's
//     own tree of commands and flags.
//   - A refused command does nothing, not even parse its flags.
//   - No kubeconfig is read, nothing is written to disk, and no port is opened.
//   - Nothing exits the process: a fatal error of kubectl is returned as an error.
package kubectl
