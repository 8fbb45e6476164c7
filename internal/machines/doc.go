// Package machines finds what ties objects to the machines of their cluster: what hurts when a
// snapshot is restored on others.
//
// Invariants:
//
//   - A tie is a fact of the object alone. Nothing is guessed from names of hosts or addresses.
//   - No tie holds bytes of a value other than names and addresses.
package machines
