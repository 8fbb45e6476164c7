// Package columns defines the tables of objects. The columns of custom resources come from their CustomResourceDefinition,
// those of built-in kinds are named and filled in as kubectl's.
//
// Invariants:
//
//   - A row has a cell for each column.
//   - Ages are relative to a time that is given, never to the present, so that the same snapshot gives the same table.
//   - An object whose fields have wrong types still gets a row, with its name and age.
package columns
