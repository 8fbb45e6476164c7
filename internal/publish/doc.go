// Package publish writes a file that gets its name only when it is whole.
//
// Invariants, each with a test named after it:
//
//   - A name that exists is never overwritten, whoever created it and when: neither a file, a folder, nor a symbolic
//     link that leads nowhere. The caller sees fs.ErrExist.
//   - A published file is complete: its data is on disk before the name is, and the name before Publish returns.
//   - A published file has mode 0600, whatever the umask or a default ACL of the folder says.
//   - A publish that fails, and a process that is killed, leaves nothing behind. The one exception: a kill on a
//     filesystem that has no nameless files (O_TMPFILE) leaves one file named ".<name>.etcdshift-*", mode 0600.
//   - The folder is opened once, in Create: a working directory that changes, or a folder that is renamed, between
//     Create and Publish moves nothing elsewhere.
package publish
