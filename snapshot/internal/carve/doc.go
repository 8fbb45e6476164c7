// Package carve finds records by their bytes, without a tree: in free pages, behind the end of a
// page, and in damaged files.
//
// Invariants, each with a test:
//
//   - Found records are records, and do not overlap.
//   - The parts of a search change no result.
//   - Bytes that claim to be many long records take no quadratic time.
package carve
