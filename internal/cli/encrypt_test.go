package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// encryptCmd encrypts the values of all keys with a PREFIX, like an API server with the
// EncryptionConfiguration CONFIG: encrypt IN OUT CONFIG PREFIX... Like decryptCmd it uses the
// library of Kubernetes, not ours.
func encryptCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: encrypt IN OUT CONFIG PREFIX...")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	transformer := transformers(ctx, ts, args[2])
	n := 0
	plan := func(ctx context.Context, v *transform.View) error {
		for _, prefix := range args[3:] {
			for e, err := range v.Live(ctx, []byte(prefix)) {
				if err != nil {
					return err
				}
				t, at := transformer(e.Key)
				out, err := t.TransformToStorage(ctx, e.Stored, at)
				if err != nil {
					return fmt.Errorf("%s: %w", e.Key, err)
				}
				n++
				if err := v.Put(ctx, e.Key, out); err != nil {
					return err
				}
			}
		}
		return nil
	}
	out := ts.MkAbs(args[1])
	_, err := transform.Run(ctx, transform.Options{Command: "encrypt", In: ts.MkAbs(args[0]), Out: out}, planFunc(plan))
	ts.Check(err)
	if n == 0 {
		ts.Fatalf("%s has nothing under %s", args[0], strings.Join(args[3:], ", "))
	}
	ts.Check(os.Chmod(out, 0o440))
	unchanging(ts, args[1])
}

// decryptCmd writes the decrypted values of all keys with PREFIX to FILE, like valuesCmd: decrypt
// SNAPSHOT CONFIG PREFIX FILE. All values must be encrypted.
func decryptCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: decrypt SNAPSHOT CONFIG PREFIX FILE")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	transformer := transformers(ctx, ts, args[1])
	var all [][]byte
	withSnapshot(ts, args[0], func(ctx context.Context, s *snapshot.Snapshot) {
		for rec, err := range s.Live(ctx, []byte(args[2])) {
			ts.Check(err)
			if !bytes.HasPrefix(rec.Value, []byte("k8s:enc:")) {
				ts.Fatalf("%s is not encrypted", rec.Key)
			}
			t, at := transformer(rec.Key)
			plain, stale, err := t.TransformFromStorage(ctx, rec.Value, at)
			ts.Check(err)
			if stale {
				ts.Fatalf("%s is not encrypted by the first provider and key", rec.Key)
			}
			all = append(all, plain)
		}
	})
	if len(all) == 0 {
		ts.Fatalf("%s has nothing under %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), bytes.Join(all, []byte("---\n")), 0o600))
}

// transformers returns a function with a server's transformer for the value of a key.
func transformers(
	ctx context.Context, ts *testscript.TestScript, config string,
) func(key []byte) (value.Transformer, value.Context) {
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, ts.MkAbs(config), false, "test")
	ts.Check(err)
	return func(key []byte) (value.Transformer, value.Context) {
		k, err := keys.Kubernetes{Prefix: "/registry"}.Parse(key)
		if err != nil {
			k, err = keys.KCPShard{Prefix: "/registry"}.Parse(key)
		}
		ts.Check(err)
		all := encryptionconfig.StaticTransformers(loaded.Transformers)
		return all.TransformerForResource(k.Resource), value.DefaultContext(bytes.Clone(key))
	}
}

// kmsCmd starts a KMS v2 plugin and writes a configuration for secrets with this plugin: kms
// CONFIG. After "dead" nothing listens on the socket.
func kmsCmd(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		endpoint := ""
		switch {
		case !neg && len(args) == 1:
			endpoint = apitest.StartKMS(t).Endpoint()
		case !neg && len(args) == 2 && args[0] == "dead":
			endpoint, args = "unix://"+apitest.KMSSocket(t), args[1:]
		default:
			ts.Fatalf("usage: kms [dead] CONFIG")
		}
		text := fmt.Sprintf(
			`{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1",`+
				`"resources":[{"resources":["secrets"],`+
				`"providers":[{"kms":{"apiVersion":"v2","name":"plugin","endpoint":%q}}]}]}`, endpoint)
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
		ts.Setenv("SOCKET", strings.TrimPrefix(endpoint, "unix://"))
	}
}
