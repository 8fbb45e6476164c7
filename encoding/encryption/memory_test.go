//go:build unix

package encryption

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

// The memory of an etcd key belongs to the caller again after a call. The library would keep the
// slice as a cache key and read it when the cache grows: here the page is unmapped by then, like a
// closed snapshot.
func TestKeyMemoryIsNotKept(t *testing.T) {
	ctx := context.Background()
	by := with(t, plugged("vault", apitest.StartKMS(t).Endpoint()))
	stored := encrypt(t, by, secrets, here, text)
	page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	mapped := page[:copy(page, here)]
	plain, _, err := by.Decrypt(ctx, secrets, mapped, stored)
	require.NoError(t, err)
	again, err := by.Encrypt(ctx, secrets, mapped, []byte(text))
	require.NoError(t, err)
	require.NoError(t, syscall.Munmap(page))

	require.Equal(t, text, string(plain))
	decrypts(t, by, secrets, here, again, text, false)
	for i := range 2000 {
		encrypt(t, by, secrets, fmt.Sprintf("%s-%d", here, i), text)
	}
}
