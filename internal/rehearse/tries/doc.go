// Package tries asks a running API server what clients will ask it: it lists all objects of each
// kind, page by page at each served version, and tries an update and a server-side apply of some.
// Any API server will do; the client must be allowed everything.
//
// Invariants:
//
//   - The store stays as it is: each write is a dry run.
//   - The same store and options give the same result, regardless of the order of answers. Of each
//     kind the same objects are tried, spread evenly over the list.
//   - No object is skipped silently: objects that are not tried are counted, by reason.
//   - A conversion that no webhook was asked for (Options.StandIn) is never a failure.
//   - Memory is bounded by pages of some megabytes, one for each worker and version, by some
//     thousand failures of each code, and by one name for each object of a kind whose list fails.
//   - No reason quotes the value of a field.
package tries
