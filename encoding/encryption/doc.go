// Package encryption opens and seals stored values as a kube-apiserver with --encryption-provider-config does. All
// cryptography, and the choice of a provider for a resource, is k8s.io/apiserver's own (pkg/server/options/encryptionconfig,
// pkg/storage/value); this package loads a configuration offline, guards that library against values and buffers it was
// not made for, and says in names why a value can't be opened.
//
// Invariants, each with a test named after it:
//
//   - A value that is not encrypted is given back as the very slice that came in, with any configuration and with none.
//   - Decrypt(Encrypt(plain)) is plain, and only under the etcd key it was encrypted for where the provider binds the two (aesgcm, kms).
//   - What a real server wrote is opened to what a server without encryption stores, and what is sealed here a real
//     server reads.
//   - stale is what the server itself would find: its next write of the object stores it otherwise.
//   - No value makes it panic, whatever its bytes and wherever it was cut off.
//   - No error holds bytes of a value, key material, or any text of a configuration file but names, sockets and fields.
//   - What kube-apiserver stores in the clear whatever the configuration says (see storedBare) is never sealed.
//   - Memory stays bounded: where KMS plugins are used the library is renewed after a number of calls, for it keeps a
//     derived key for every etcd key; the memory of the caller's etcd key is not kept at all.
//   - After Close nothing runs and no socket is open.
//
// The packages beneath log failures with klog, which writes to standard error unless the program sets klog's logger; a
// library can't do that for itself, so the program has to. They never log bytes of a value.
package encryption
