// Package publish writes a file that gets its name only when it is complete.
//
// Invariants, each with a test named after it:
//
//   - An existing name is never overwritten, regardless of who created it and when: a file, a
//     folder, or a dangling symbolic link. The caller sees fs.ErrExist.
//   - A published file is complete: its data is on disk before its name, and the name before
//     Publish returns.
//   - A published file has mode 0600, regardless of the umask or a default ACL of the folder.
//   - A failed publish, and a killed process, leave nothing. The one exception: a kill on a
//     filesystem without nameless files (O_TMPFILE) leaves ".<name>.etcdshift-*", mode 0600.
//   - The folder is opened once, in Create: a later change of the working directory, or of the
//     folder's name, moves nothing elsewhere.
package publish
