// Package rehearse restores a snapshot into a real etcd and real API servers of its own, tries what
// clients do, and reports what fails.
//
// Invariants:
//
//   - The snapshot is only read. Everything else lies in one folder of the user alone, and is gone
//     afterwards.
//   - etcd is compared with our reading of the file before anything else writes to it.
//   - Nothing outside of this machine is contacted, except a conversion webhook that was named.
//   - What could not be checked is named, with the reason; it is never counted as passed.
//   - A server that ends by itself is a finding with its last words, not an error of the run.
//   - Findings are in the same order in each run. Only times and memory differ.
package rehearse
