package encryption_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/snapshot"
)

// A real configuration has a random secret; this secret is for an example.
const configuration = `{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
"resources": [{"resources": ["secrets"], "providers": [
  {"aesgcm": {"keys": [{"name": "key1", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}}]}]}`

// Encrypt a Secret of a snapshot as an API server would, and decrypt it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "encryption.json")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		log.Fatal(err)
	}
	keys, err := encryption.Load(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()
	in, err := snapshot.Open(ctx, "../../testdata/kubectl/all.db.gz", snapshot.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	rec, err := in.Get(ctx, []byte("/registry/secrets/a/s"))
	if err != nil {
		log.Fatal(err)
	}

	secrets := schema.GroupResource{Resource: "secrets"}
	stored, err := keys.Encrypt(ctx, secrets, rec.Key, rec.Value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(encoding.Encryption(stored))
	plain, stale, err := keys.Decrypt(ctx, secrets, rec.Key, stored)
	fmt.Println(encoding.Detect(plain), stale, err)

	// Another etcd key: aesgcm binds a value to its key.
	_, _, err = keys.Decrypt(ctx, secrets, []byte("/registry/secrets/b/s"), stored)
	fmt.Println(errors.Is(err, encoding.ErrEncrypted))
	// Output:
	// aesgcm:v1:key1 true
	// protobuf false <nil>
	// true
}
