// Package machines finds ties of objects to the machines of their cluster, which break a restore on
// other machines. It also finds the objects behind Services and volumes: the endpoints that
// webhooks and aggregated API servers need, addresses shared by several Services, and the Pods and
// attachments that hold a volume. And it computes the names that Calico's IPAM gives to records of
// nodes, like libcalico-go.
//
// Invariants:
//
//   - A tie is a fact of the object alone. Nothing is guessed from names of hosts or addresses.
//   - An undecodable object has no addresses.
//   - No tie holds bytes of a value other than names and addresses.
package machines
