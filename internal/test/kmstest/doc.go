// Package kmstest gives tests a KMS v2 plugin: a real gRPC server on a unix socket, on the service of k8s.io/kms, with
// keys that live in memory. It is test support; nothing that ships imports it.
//
// Invariants:
//   - What was sealed with a key is opened as long as that key is not forgotten, also after Rotate, Stop and Restart.
//   - The socket's path is short enough for every system (104 bytes on macOS), wherever the test's temporary folder is.
//   - The server and its socket are gone when the test ends.
package kmstest
