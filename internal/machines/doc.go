// Package machines finds what ties objects to the machines of their cluster: what hurts when a
// snapshot is restored on others; and what is behind Services and volumes: the endpoints that
// webhooks and aggregated API servers need, addresses that several Services have, and the Pods and
// attachments that hold a volume. It also has the names that Calico's IPAM gives to records of
// nodes, as libcalico-go computes them.
//
// Invariants:
//
//   - A tie is a fact of the object alone. Nothing is guessed from names of hosts or addresses.
//   - What cannot be decoded has no addresses.
//   - No tie holds bytes of a value other than names and addresses.
package machines
