// Package kmstest gives tests a KMS v2 plugin: a real gRPC server on a unix socket, on the service
// of k8s.io/kms, with keys in memory. Only tests import it.
//
// Invariants:
//   - The plugin decrypts with each key that is not forgotten, also after Rotate and Restart.
//   - The path of the socket is short enough for every system (104 bytes on macOS).
//   - The server and its socket are gone when the test ends.
package kmstest
