// Package keys parses etcd keys of Kubernetes objects and formats them. The package works on
// strings only: no I/O, no values.
//
// A [Detector] finds the storage prefixes of a file from its keys and returns [Layouts], which
// parse any key of the file into a [Key]. [Kubernetes], [OpenShift], [KCPShard] and [KCPCache] are
// the layouts.
//
// Invariants, each with a test named after it:
//
//   - Format(Parse(k)) is k, byte for byte, for every k that a layout parses. Any other key is
//     [ErrUnknownKey]; callers keep the record unchanged and report it.
//   - Parse(Format(key)) is key for every key of a built-in resource, with names that an API server
//     accepts.
//   - A Key names the resource of the API (nodes, deployments.apps), not its folder (minions,
//     deployments).
//   - A key of kcp belongs to one logical cluster or to none; the result depends on the key alone.
//   - A key belongs to the storage with the longest matching prefix and is parsed by its layout
//     only. Names chosen by tenants never make a prefix.
//   - Dir ends with a slash: a range read of "widgets/" never returns keys of "widgetsets/".
package keys
