// Package sanitize replaces the secrets in a snapshot, so that it can be handed to others.
//
// Package internal/redact finds the secrets. Each is replaced by a value of the same shape and
// length, derived from the secret and a discarded key: equal secrets have equal replacements. Words
// of names get aliases, keyed hashes of the same shape; records move to keys with the aliases.
//
// Invariants:
//
//   - No byte of a replaced value is in the output: history, deleted records, free pages, users of
//     etcd and members are left out.
//   - A record that cannot be read or written refuses the run, or is left out: it is never copied.
//   - The output can be restored; its objects decode and fit the schemas of their types.
//   - The same key gives the same bytes.
package sanitize
