// Package keys takes etcd keys apart and puts them together: pure string work, no I/O, no decoding of values.
//
// Invariants, each with a test named after it:
//
//   - Format(Parse(k)) is k, byte for byte, for every k that a layout parses. What it can't give back it does not parse:
//     it answers ErrUnknownKey, and the caller keeps the record as it is and reports it.
//   - Parse(Format(key)) is key for every key of a resource in the table of built-ins, with names an API server takes.
//   - A Key names the API's resource, as clients and RBAC do (nodes, deployments.apps), and never the spelling of the
//     place where it is stored (minions, deployments).
//   - A key of kcp is of one logical cluster, or of none, whoever asks: which part of it names the cluster does not depend on
//     the cluster that someone looks for.
//   - A key lies in the storage of the longest prefix, and is a key of that layout or of none. What a tenant may name its
//     objects never makes a prefix of its own.
//   - Dir ends with a slash, so that a range read over "widgets/" never meets "widgetsets/".
package keys
