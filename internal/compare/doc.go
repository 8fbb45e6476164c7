// Package compare finds the differences between the objects of two snapshots, or two revisions of
// an object.
//
// Invariants:
//
//   - Each key whose value or lease differs is found by the stored bytes; only these are decoded.
//     Memory is a few bytes for each such key.
//   - No difference is dropped: those folded away as noise are counted.
//   - A value that cannot be decrypted or decoded is compared by its bytes, and a note says so.
//   - Credentials (see inspect/redact) are compared, and shown as redacted.
package compare
