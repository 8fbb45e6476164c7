// Package native decodes any stored value into JSON content, as a client of the API sees the
// object: JSON and CBOR as they are, protobuf through the types of k8s.io/api that client-go's
// scheme lists.
//
// Invariants:
//
//   - The result is JSON content: map[string]any, []any, string, bool, int64, float64 and nil, with
//     apiVersion and kind.
//   - Nothing is defaulted or converted: the object is at the version it is stored at, with the
//     fields that are stored. Same alone knows defaults, to compare.
//   - A kind that the build does not know is ErrUnknownKind, and Metadata still reads what every
//     object has.
//   - Hostile bytes end in an error; never in a panic. No error contains a value.
package native
