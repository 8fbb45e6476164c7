// Package encryption decrypts and encrypts stored values like a kube-apiserver with
// --encryption-provider-config. [Load] reads the configuration; [Transformers.Decrypt] and
// [Transformers.Encrypt] do the rest.
//
// All cryptography and the choice of a provider for a resource come from k8s.io/apiserver
// (pkg/server/options/encryptionconfig, pkg/storage/value). This package loads a configuration
// offline, guards the library against values and buffers that the library cannot handle, and
// explains by names why a value is undecryptable.
//
// Invariants, each with a test named after it:
//
//   - With any configuration, or none, plaintext is returned as the same slice.
//   - Decrypt(Encrypt(plain)) is plain; with aesgcm and kms only under the same etcd key.
//   - Decrypt of a value of a real server returns the bytes stored by a server without encryption,
//     and a real server reads values of Encrypt.
//   - stale agrees with the server: the next update of a stale object changes its stored bytes.
//   - No value causes a panic, regardless of its bytes and length.
//   - No error quotes a value, a key, or text of a configuration except names, sockets and fields.
//   - Records that kube-apiserver never encrypts (see storedBare) stay plaintext.
//   - Memory stays bounded: the library keeps a derived key for each etcd key of a KMS plugin, so
//     the library is renewed after a number of calls. The memory of the caller's etcd key is never
//     kept.
//   - After Close no goroutine runs and no socket is open.
//
// The Kubernetes libraries log failures with klog to standard error unless the program sets klog's
// logger. They never log bytes of a value.
package encryption
