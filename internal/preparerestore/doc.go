// Package preparerestore prepares a snapshot for other machines, or for a copy beside the original
// cluster.
//
// Invariants:
//
//   - Each change belongs to one named step, which a flag can disable.
//   - Body.Saved of the report holds deleted APIServices whole, and the original fields of other
//     changed objects, without the values of Secrets.
//   - --undo restores a field only if the field still has the value written by the step.
package preparerestore
