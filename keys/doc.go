// Package keys parses etcd keys of Kubernetes objects and formats them. It works on strings alone:
// no I/O, no values.
//
// A [Detector] finds the storage prefixes of a file by its keys. The [Layouts] that it returns
// parse any key of the file into a [Key]. [Kubernetes], [OpenShift], [KCPShard] and [KCPCache] are
// the layouts.
//
// Invariants, each with a test named after it:
//
//   - Format(Parse(k)) is k, byte for byte, for every k that a layout parses. Any other key is
//     [ErrUnknownKey]; callers keep such a record as it is, and report it.
//   - Parse(Format(key)) is key for every key of a built-in resource, with names an API server
//     accepts.
//   - A Key names the resource of the API (nodes, deployments.apps), not its folder (minions,
//     deployments).
//   - A key of kcp is of one logical cluster or of none; the result depends on the key alone.
//   - A key lies in the storage of the longest prefix, and is a key of that layout or of none.
//     Names that tenants choose never make a prefix.
//   - Dir ends with a slash: a range read of "widgets/" never meets "widgetsets/".
package keys
