// Package render prints rows, documents and text: tables, JSON, JSON lines, YAML, SARIF, templates, and what a terminal shows while
// work goes on. It knows no command and prints only to the writers that it is given.
//
// Invariants:
//
//   - No name, key or value moves a terminal's cursor: control characters are quoted in text and escaped in JSON and YAML.
//   - What a hostile object makes a table, a document or a template print is bounded by a multiple of the object's size.
//   - A list is printed element by element, however long it is.
package render
