package encryption

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/internal/input"
)

// maxCalls bounds the memory of a library with KMS plugins: for ten minutes it keeps a derived key
// for each etcd key, measured as 1.2 KB.
const maxCalls = 50_000

// Transformers decrypt and encrypt values as an API server with one EncryptionConfiguration does. A
// nil *Transformers returns plaintext and encrypts nothing. It is safe for concurrent use.
type Transformers struct {
	config config
	again  source
	limit  int64 // calls of a library with KMS plugins before it is renewed

	mu      sync.RWMutex // held for reading while library is in use
	library library
	calls   atomic.Int64 // of this library
}

// source returns a path from which the configuration can be read once, and its release.
type source func() (path string, release func(), err error)

// Load reads the EncryptionConfiguration in the file path, which may be a pipe, and connects to its
// KMS plugins. Errors name file and field, never a key. A KMS plugin without a healthy KMS v2
// answer within ten seconds is an error that names its socket. ctx is for Load only.
func Load(ctx context.Context, path string) (*Transformers, error) {
	text, regular, err := input.ReadFile(ctx, path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration: %w", err)
	}
	again := func() (string, func(), error) { return path, func() {}, nil }
	if !regular {
		again = func() (string, func(), error) { return pipe(text) }
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	loaded, err := connect(ctx, c, again)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	return &Transformers{config: c, again: again, limit: maxCalls, library: loaded}, nil
}

// Close ends the connections to KMS plugins and never fails. Only Close may be called after it.
func (t *Transformers) Close() error {
	if t != nil {
		t.mu.RLock()
		defer t.mu.RUnlock()
		t.library.stop()
	}
	return nil
}

// maxConfig is the longest configuration in bytes.
const maxConfig = 4 << 20

// pipe returns the path of a pipe that holds text once. The library opens a file by name; a file
// that can be read only once, such as a shell's <(sops -d FILE), never gets onto a disk.
func pipe(text []byte) (path string, release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	go func() {
		_, _ = w.Write(text) // a reader that went away has its own error
		_ = w.Close()
	}()
	return fmt.Sprintf("/dev/fd/%d", r.Fd()), func() { _ = r.Close() }, nil
}
