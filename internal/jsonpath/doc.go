// Package jsonpath runs the JSONPath templates of kubectl on JSON content, within bounds.
//
// The language is that of k8s.io/client-go/util/jsonpath, whose parser is used. Its evaluation is written out again here, since it
// can be neither bounded nor stopped: a path such as ..a..a..a..a finds millions of values in an object of a kilobyte.
//
// Invariants:
//   - A path finds what client-go's finds, in the same order; but where that visits a map in random order, the order is that of
//     the keys. A missing field is nothing, not an error.
//   - Work bounds the values that are found and the bytes that are printed, before the memory for them is taken.
//   - Errors quote no values.
//   - A Path never changes and may be shared between goroutines; a Work may not.
package jsonpath
