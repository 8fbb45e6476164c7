// Package columns defines the table columns of each type. Custom resources have the columns of
// their CustomResourceDefinition, built-in kinds those of kubectl.
//
// Invariants:
//
//   - A row has a cell for each column, or only the name of a malformed object.
//   - Ages are relative to a given time, so that one snapshot always gives the same table.
package columns
