// Package render prints tables, JSON, JSON lines, YAML, templates, and progress on a terminal. It
// knows no command and prints only to given writers.
//
// Invariants:
//
//   - No name, key or value moves a terminal's cursor: text quotes control characters, JSON escapes
//     them.
//   - The output for a hostile object is bounded by a multiple of its size.
//   - A list of any length is printed element by element.
package render
