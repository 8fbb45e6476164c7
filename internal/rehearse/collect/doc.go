// Package collect shows what the garbage collector does first: which objects it deletes because
// their owners are gone. The collector is a real one, of a kube-controller-manager, and works on a
// store that is thrown away.
//
// Invariants:
//
//   - The result is complete only after the collector has proved twice that it works: it deleted an
//     object that was there before its first look, and one that was made after it.
//   - Only what a collector does is in the result: the objects had owners.
//   - An object whose owners cannot be read, such as an encrypted one, is in the result.
//   - A process that ends, or never begins to collect, is an error.
package collect
