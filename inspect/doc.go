// Package inspect reads the objects in a snapshot, decrypted where a [Decrypter] has the keys.
//
// A [Reader] yields an [Entry] for each live key, or an [Object] with its content. [Reader.Types]
// resolves names as kubectl does, [Survey] lists stored versions, [Measure] sizes, [Reader.Deleted]
// deletions. Nothing is ever written.
//
// Invariants:
//
//   - An undecryptable value is returned as stored, with the reason. No other value takes its
//     place.
//   - Every live key is counted exactly once: under its resource, or under none.
//   - Statements about a value come from that value: the storedVersions of a
//     CustomResourceDefinition are shown beside the stored versions, never in their place.
package inspect
