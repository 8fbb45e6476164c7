// Package sanitize replaces the secrets in a snapshot, so that it can be handed to others.
//
// What is a secret, internal/redact knows. In its place comes a value of the same shape and length,
// derived from the secret and a key that no one keeps: equal secrets have equal values. Words of
// names have aliases, keyed hashes of their shape; records move to the keys of these.
//
// Invariants:
//
//   - No byte of a replaced value is in the output: history, deleted records, free pages, users of
//     etcd and members are left out.
//   - A record that cannot be read or written refuses the run, or is left out: it is never copied.
//   - The output is restored, and its objects decode and fit the schemas of their types.
//   - The same key gives the same bytes.
package sanitize
