// Package encryption decrypts and encrypts stored values as a kube-apiserver with
// --encryption-provider-config does. [Load] reads the configuration; [Transformers.Decrypt] and
// [Transformers.Encrypt] do the rest.
//
// All cryptography and the choice of a provider for a resource come from k8s.io/apiserver
// (pkg/server/options/encryptionconfig, pkg/storage/value). This package loads a configuration
// offline, guards that library against values and buffers that it cannot handle, and explains by
// names why a value is undecryptable.
//
// Invariants, each with a test named after it:
//
//   - Any configuration, and none, returns plaintext as the very slice that came in.
//   - Decrypt(Encrypt(plain)) is plain; with aesgcm and kms only under the same etcd key.
//   - Decrypt of a value of a real server returns the bytes that a server without encryption
//     stores, and a real server reads values of Encrypt.
//   - stale agrees with the server: its next write of the object stores it otherwise.
//   - No value makes it panic, regardless of its bytes and length.
//   - No error quotes a value, a key, or text of a configuration except names, sockets and fields.
//   - Records that kube-apiserver never encrypts (see storedBare) stay plaintext.
//   - Memory stays bounded: with KMS plugins the library, which keeps a derived key for each etcd
//     key, is renewed after a number of calls. The memory of the caller's etcd key is never kept.
//   - After Close no goroutine runs and no socket is open.
//
// The Kubernetes libraries log failures with klog to standard error unless the program sets klog's
// logger. They never log bytes of a value.
package encryption
