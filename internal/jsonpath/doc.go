// Package jsonpath runs the JSONPath templates of kubectl on JSON content, within bounds.
//
// It parses with k8s.io/client-go/util/jsonpath, whose evaluation can be neither bounded nor
// stopped: a path such as ..a..a..a..a finds millions of values in an object of a kilobyte.
//
// Invariants:
//
//   - A path finds the values that client-go finds, in the same order, but maps are visited by key
//     instead of in random order. A missing field is no error.
//   - Work bounds the values found and the bytes printed before their memory is allocated.
//   - Errors quote no values.
//   - A Path never changes and may be shared between goroutines; a Work may not.
package jsonpath
