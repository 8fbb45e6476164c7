// Package transform is what all migrations share: a View of a snapshot with staged changes, the Report of what was found,
// planned and done, and Run, which takes a Transform from an input file to a verified output file.
//
// Invariants, each with a test:
//
//   - A Transform stages and never writes: the output appears only after the whole plan was made, checked and verified.
//   - A later read sees what was staged before it; two changes of one key compose, the last one is written.
//   - Nothing is skipped in silence: a record that cannot be handled is a Problem with its key, and any problem above a
//     warning refuses the run unless its code was allowed.
//   - Deterministic: the order of staging is the order of writing; times come from Options.Time or the snapshot.
//   - Staged values beyond a few MiB lie in a nameless scratch file in the folder of the output, never in memory.
package transform
