// Package patch changes objects as kubectl patch does, without the server's rules about immutable
// fields.
//
// Invariants:
//
//   - The result equals the result of an API server's own patch code for the same object and patch,
//     except for defaults, which a server adds when reading the object.
//   - A patch never changes the identity of an object: name, namespace, UID, apiVersion and kind.
//   - A patch that cannot be applied to a chosen object is a finding about that object.
//   - Errors and findings never quote a value of an object.
package patch
