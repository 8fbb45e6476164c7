// Package patch changes objects as kubectl patch does, without the server's rules about immutable
// fields.
//
// Invariants:
//
//   - The patched object is the one that an API server's own patch code makes of the same object
//     and patch; only defaults are missing, which a server adds when it reads the object.
//   - A patch never makes another object of an object: name, namespace, UID, apiVersion and kind
//     stay.
//   - A patch that cannot be applied to one of the chosen objects is a finding about that object.
//   - No error or finding quotes a value of an object.
package patch
