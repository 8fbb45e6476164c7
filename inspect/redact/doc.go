// Package redact takes out of objects what must not be shown, and leaves what tells a reader what was there: names of fields and
// keys, and sizes ("<redacted 32 bytes>").
//
// What is taken out:
//
//   - data and stringData of Secrets, also of Secrets inside other objects; so Helm releases, bootstrap tokens, service account
//     tokens and dockerconfigs go too. Helm releases in ConfigMaps.
//   - The last-applied annotation of every object: it repeats the object as somebody wrote it.
//   - What has the name of a secret (names.go) and is a literal (literal.go): a field, an annotation, an entry, an environment
//     variable, a header, a parameter, a flag of a command. Paths, variables, templates and encrypted values are no literals.
//   - What has the shape of a secret (shapes.go), whatever it is called: private keys, tokens of well-known services, hashes of
//     passwords, manifests of Secrets, URLs with a password, command lines that give one.
//   - A text that holds one of these, as a whole (text.go). It is parsed where it is JSON or YAML, also in base64 and in a text in a
//     text, and judged as an object is; any other text is scanned for "name=value", <name>value and the like (scan.go).
//
// What a name or a shape would hide and is no secret stays: definitions of types with their schemas, certificates, signing requests and
// public keys, names of Secrets and of their entries. What is found is found by its name or by its shape: a password that is in a
// field "greeting" is not.
//
// Invariants:
//
//   - Nothing of what is redacted is left but its length, for any content, however wrong its types are.
//   - A second pass changes nothing.
//   - testdata has what must be hidden and what must be shown, and none is judged wrongly. A text takes time in proportion to its length.
package redact
