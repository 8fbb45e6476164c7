// Package preparerestore makes a snapshot fit for other machines than those that it was taken on,
// and for a copy beside the cluster that it is from.
//
// Invariants:
//
//   - Each change belongs to one named step, which a flag switches off.
//   - What may be wanted back is in Body.Saved of the report: deleted APIServices whole, of other
//     objects the fields as they were. No value of a Secret is.
//   - --undo puts a field back only where it still has the value that the step wrote.
package preparerestore
