// Package compare says what became of the objects of a cluster between two snapshots, or of one object between two of its
// revisions.
//
// Invariants:
//
//   - Every key whose value or lease differs is found, by the stored bytes; what it means is asked of these alone. Memory is a few bytes
//     a key that differs.
//   - Nothing that differs is dropped: what is folded away as noise is counted.
//   - A value that cannot be decrypted or decoded is compared by its bytes, and that is said.
//   - What must not be shown (see inspect/redact) is compared, and shown as redacted.
package compare
