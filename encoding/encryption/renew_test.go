package encryption

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

// A library with a KMS plugin is renewed after its number of calls, without disturbing running
// calls. The new library decrypts values of the old library.
func TestLibraryIsRenewed(t *testing.T) {
	plugin := apitest.StartKMS(t)
	path := configuration(t, rule("secrets", plugged("vault", plugin.Endpoint())))
	by := load(t, path)
	by.limit = 20
	var all sync.WaitGroup
	results := make([]error, 4)
	for worker := range results {
		all.Go(func() {
			for i := 0; i < 100 && results[worker] == nil; i++ {
				key := fmt.Appendf(nil, "%s-%d-%d", here, worker, i)
				stored, err := by.Encrypt(context.Background(), secrets, key, []byte(text))
				if err == nil {
					_, _, err = by.Decrypt(context.Background(), secrets, key, stored)
				}
				results[worker] = err
			}
		})
	}
	all.Wait()
	for _, err := range results {
		require.NoError(t, err)
	}
	require.Positive(t, plugin.Decrypts(), "data keys of earlier libraries are decrypted by the plugin")
	require.LessOrEqual(t, by.calls.Load(), by.limit)

	by.calls.Store(by.limit)
	stored := []byte("k8s:enc:kms:v2:vault:x")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("# other\n"+string(before)), 0o600))
	_, _, err = by.Decrypt(context.Background(), secrets, []byte(here), stored)
	require.EqualError(t, err, "loading the encryption configuration again: the file has changed")
	require.NotErrorIs(t, err, encoding.ErrEncrypted)
	require.NoError(t, os.Remove(path))
	_, err = by.Encrypt(context.Background(), secrets, []byte(here), []byte(text))
	require.ErrorIs(t, err, os.ErrNotExist)

	without := with(t, keyed("aescbc", "key1", "a"))
	without.limit = 0
	decrypts(t, without, secrets, here, encrypt(t, without, secrets, here, text), text, false)
	require.Zero(t, without.calls.Load())
}
