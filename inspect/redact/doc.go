// Package redact takes out of objects what must not be shown, and leaves what tells a reader what was there: names of fields and
// keys, and sizes ("<redacted 32 bytes>").
//
// What is taken out:
//
//   - data and stringData of Secrets, also of Secrets inside other objects; so Helm releases, bootstrap tokens, service account
//     tokens and dockerconfigs go too.
//   - The last-applied annotation of every object: it repeats the object as somebody wrote it.
//   - Annotations, data of ConfigMaps, environment variables, fields of custom resources and command line flags that are named
//     as passwords, tokens and private keys are, where they hold a literal. Paths of files are not literals.
//   - Any text, wherever it stands, that holds a private key in PEM, a JSON web token, a kubeconfig, a manifest of a Secret, a
//     join command with its token, or a URL with a password. Helm releases in ConfigMaps.
//
// Certificates, certificate signing requests and public keys stay; so do names of Secrets, and managedFields, which hold
// names of fields only. What is found is found by its name or by its shape: a password that is in a field "greeting" is not.
//
// Invariants:
//
//   - Nothing of what is redacted is left but its length, for any content, however wrong its types are.
//   - A second pass changes nothing.
package redact
