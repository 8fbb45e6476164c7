// Package compare finds the differences of the objects in two snapshots, or in two revisions of one object.
//
// Invariants:
//
//   - Every key whose value or lease differs is found by the stored bytes; only these are decoded. Memory is a few bytes for each key
//     that differs.
//   - No difference is dropped: those folded away as noise are counted.
//   - A value that cannot be decrypted or decoded is compared by its bytes, and a note says so.
//   - Credentials (see inspect/redact) are compared, and shown as redacted.
package compare
