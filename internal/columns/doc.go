// Package columns says what a table of objects shows: for custom resources the columns of their CustomResourceDefinition, for
// the built-in kinds columns of its own that are named and filled in as those of kubectl.
//
// Invariants:
//
//   - A row has a cell for each column.
//   - Ages are relative to a time that is given, never to the present, so that the same snapshot gives the same table.
//   - An object whose fields have wrong types still gets a row, with its name and age.
package columns
