package encryption

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/internal/input"
)

// maxCalls bounds what the library keeps where KMS plugins are used: a key for every etcd key it has seen, for ten
// minutes, which was measured as 1.2 KB each.
const maxCalls = 50_000

// Transformers open and seal values as an API server with one EncryptionConfiguration does. A nil *Transformers has no
// configuration: what is in the clear is opened, nothing is sealed. It may be used from several goroutines.
type Transformers struct {
	config config
	again  source
	limit  int64 // calls of a library with KMS plugins before it is renewed

	mu      sync.RWMutex // held for reading while library is in use
	library library
	calls   atomic.Int64 // of this library
}

// source gives a path at which the configuration can be read once, and what ends that.
type source func() (path string, release func(), err error)

// Load reads the EncryptionConfiguration in the file path, which may be a pipe, and connects to its KMS plugins. Errors
// name the file and the field, never a key. A KMS plugin that does not answer, or not as a healthy KMS v2 plugin, is an
// error after ten seconds that names its socket. ctx is for loading only; Close ends what Load has started.
func Load(ctx context.Context, path string) (*Transformers, error) {
	text, again, err := read(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration: %w", err)
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

// Close ends the connections to KMS plugins. It may be called more than once and never fails; Decrypt and Encrypt must not be
// called after it.
func (t *Transformers) Close() error {
	if t != nil {
		t.mu.RLock()
		defer t.mu.RUnlock()
		t.library.stop()
	}
	return nil
}

// maxConfig is how long a configuration may be, in bytes.
const maxConfig = 4 << 20

// read returns the file's text, and what gives the library, which opens a file by name, the same text again: the path
// itself, or for what can be read only once (a shell's <(sops -d FILE)) a pipe. Decrypted keys never go to a disk.
func read(ctx context.Context, path string) (text []byte, again source, err error) {
	text, regular, err := input.ReadFile(ctx, path, maxConfig)
	if err != nil {
		return nil, nil, err
	}
	if regular {
		return text, func() (string, func(), error) { return path, func() {}, nil }, nil
	}
	return text, func() (string, func(), error) { return pipe(text) }, nil
}

// pipe is the path of a pipe that gives text once.
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
