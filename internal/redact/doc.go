// Package redact hides credentials in objects. Names of fields and keys stay, and the sizes of
// values: "<redacted 32 bytes>".
//
// Hidden are:
//
//   - data and stringData of Secrets, also of Secrets inside other objects. These include Helm
//     releases, bootstrap tokens, service account tokens and dockerconfigs. Helm releases in
//     ConfigMaps.
//   - The last-applied annotation of every object: it repeats the object as somebody wrote it.
//   - A literal (shapes.go) with the name of a secret (rules.txt): a field, an annotation, an
//     entry, an environment variable, a header, a parameter, a flag of a command. Paths,
//     variables, templates and encrypted values are no literals.
//   - A text with the shape of a secret (rules.txt), whatever its name: private keys, tokens of
//     well-known services, hashes of passwords, manifests of Secrets, URLs with a password, command
//     lines with one.
//   - A whole text that holds one of these (text.go). JSON and YAML, also in base64 and in a
//     text in a text, is parsed and checked as an object is. Any other text is scanned for
//     "name=value", <name>value and the like (scan.go).
//
// Shown are definitions of types with their schemas, certificates, signing requests, public keys,
// and names of Secrets and of their entries. A secret is found by its name, by its shape, or if a
// Secret of the file has it (shared.go): any other password in a field "greeting" is shown.
//
// [With] puts other values in place of what [Shared.Object] hides: a text with a secret in it keeps
// its structure where that is known (inside.go).
//
// Invariants:
//
//   - With replaces what Object hides, and nothing else.
//   - Only the length of a redacted value is left, even in content of wrong types.
//   - A second pass changes nothing.
//   - testdata lists texts to hide and texts to show. Time is proportional to the length of a text.
package redact
