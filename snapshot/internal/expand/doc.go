// Package expand recognizes compressed files and archives with one database, and expands them. It
// knows the beginning of a database, but not its content.
//
// An expansion is bounded: by a limit, by the ratio of a snapshot, by the size that the first block
// names, and by the number of files in an archive. It ends with its context.
package expand
