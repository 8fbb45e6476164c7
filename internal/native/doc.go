// Package native decodes any stored value into JSON content, as clients of the API see the object:
// JSON and CBOR unchanged, protobuf through the types of k8s.io/api in client-go's scheme.
//
// Invariants:
//
//   - The result is JSON content: map[string]any, []any, string, bool, int64, float64 and nil, with
//     apiVersion and kind.
//   - Nothing is defaulted or converted: the object has its stored version and stored fields. Only
//     Same and the validation apply defaults.
//   - For a kind unknown to the build the error is ErrUnknownKind, and Metadata still reads the
//     common fields of all objects.
//   - Hostile bytes cause an error, never a panic. No error contains a value.
package native
