// Package codedoc checks the problem codes of a package against docs/problems.md: what that page promises about a command is
// what the command does. It is test support; nothing that ships imports it.
//
// Invariants:
//
//   - A code is a constant whose name begins with "code" and whose value is a string; no other literal is one.
//   - A section of docs/problems.md is "### `CODE`". Its line "- **Level:**" has clauses with "; " between them; one that names a
//     command, in backticks, is about that command alone, any other about all of them. One with "error that `--allow` does not take"
//     is about no code that can be allowed.
package codedoc
