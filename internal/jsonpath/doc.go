// Package jsonpath runs the JSONPath templates of kubectl on JSON content, within bounds.
//
// It uses the parser of k8s.io/client-go/util/jsonpath, but not its evaluation, which can be
// neither bounded nor stopped: a path such as ..a..a..a..a finds millions of values in an object of
// a kilobyte.
//
// Invariants:
//   - A path finds the values of client-go, in the same order, but maps are visited by key. A
//     missing field is no error.
//   - Work bounds values and printed bytes before memory is taken for them.
//   - Errors quote no values.
//   - A Path never changes and may be shared between goroutines; a Work may not.
package jsonpath
