// Package transform is what all migrations share. [Run] takes a [Transform] from an input file to a
// verified output file: the Transform stages changes on a [View], and the [Report] tells what was
// found, planned and done. A [Spec] describes a Transform as a command. A [Store] is a View below
// one storage prefix, for migrations of many steps.
//
// Invariants, each with a test:
//
//   - A Transform stages and never writes: the output appears only after the whole plan was made,
//     checked and verified.
//   - A later read sees what was staged before it. Of two changes of one key the last is written.
//   - Nothing is skipped in silence: a record that cannot be handled is a [finding.Finding] with
//     its key ([View.Raise]). An error-level finding refuses the run unless its code is allowed.
//   - Deterministic: the order of staging is the order of writing; times come from [Options] or the
//     snapshot.
//   - Staged values beyond a few MiB lie in a nameless scratch file in the folder of the output.
//   - An encrypted value is never written in the clear: see [View.Put] and [View.Derive].
package transform
