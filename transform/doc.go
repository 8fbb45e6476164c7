// Package transform is the base of all migrations. [Run] applies a [Transform] to an input file and
// verifies the output file: the Transform stages changes on a [View], and the [Report] lists
// findings and changes. A [Spec] describes a Transform as a command.
//
// Invariants, each with a test:
//
//   - A Transform stages and never writes: the output appears only after the whole plan was made,
//     checked and verified.
//   - A later read sees all changes staged before. Of two changes of one key the last is written.
//   - No record is skipped without a report: for a record that cannot be handled there is a
//     [finding.Finding] with the key ([View.Raise]). An error-level finding refuses the run unless
//     its code is allowed.
//   - Deterministic: the order of staging is the order of writing; times come from [Options] or the
//     snapshot.
//   - Staged values beyond a few MiB are in a nameless scratch file in the folder of the output.
//   - An encrypted value is never written in the clear: see [View.Put] and [View.Derive].
package transform
