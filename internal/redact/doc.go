// Package redact hides credentials in objects. Field names, keys and value sizes stay visible:
// "<redacted 32 bytes>".
//
// Hidden are:
//
//   - data and stringData of Secrets, also of Secrets inside other objects. These include Helm
//     releases, bootstrap tokens, service account tokens and dockerconfigs. Helm releases in
//     ConfigMaps.
//   - The last-applied annotation of every object: a copy of the object as applied.
//   - A literal (shapes.go) with the name of a secret (rules.txt): a field, an annotation, an
//     entry, an environment variable, a header, a parameter, a flag of a command. Paths,
//     variables, templates and encrypted values are not literals.
//   - A text with the shape of a secret (rules.txt), regardless of its name: private keys, tokens
//     of well-known services, password hashes, manifests of Secrets, URLs with a password, command
//     lines with a password.
//   - A whole text with any of these secrets inside (text.go). JSON and YAML, also in base64 and
//     nested in other texts, is parsed and checked like an object. Any other text is scanned for
//     "name=value", <name>value and similar forms (scan.go).
//
// Shown are type definitions with their schemas, certificates, signing requests, public keys, and
// names of Secrets and of their entries. A secret is found by its name, by its shape, or because a
// Secret of the file contains it (shared.go): any other password in a field "greeting" is shown.
//
// [With] replaces the values that [Shared.Object] hides. A text with a known structure keeps that
// structure (inside.go).
//
// Invariants:
//
//   - With and Object hide the same values.
//   - Only the length of a redacted value is left, even in content of wrong types.
//   - A second pass changes nothing.
//   - testdata lists texts to hide and texts to show. Time is proportional to the length of a text.
package redact
