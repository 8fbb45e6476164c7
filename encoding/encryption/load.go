package encryption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"

	"github.com/etcdshift/etcdshift/internal/input"
)

// maxCalls limits the memory of a library with KMS plugins: the library keeps a derived key,
// measured as 1.2 KB, for each etcd key for ten minutes.
const maxCalls = 50_000

// Transformers decrypt and encrypt values like an API server with one EncryptionConfiguration. A
// nil *Transformers returns plaintext and encrypts nothing. Transformers are safe for concurrent
// use.
type Transformers struct {
	config config
	reopen source
	limit  int64 // calls of a library with KMS plugins before it is renewed

	mu      sync.RWMutex // held for reading while library is in use
	library library
	calls   atomic.Int64 // calls of library so far
}

// source returns a path for one read of the configuration, and a function that releases the path.
type source func() (path string, release func(), err error)

// Load reads the EncryptionConfiguration in the file path, which may be a pipe, and connects to its
// KMS plugins. Errors name file and field, never a key. A KMS plugin without a healthy KMS v2
// answer within ten seconds is an error that names its socket. ctx is for Load only.
func Load(ctx context.Context, path string) (*Transformers, error) {
	text, regular, err := input.ReadFile(ctx, path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration: %w", err)
	}
	reopen := func() (string, func(), error) { return path, func() {}, nil }
	if !regular {
		reopen = func() (string, func(), error) { return pipe(text) }
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	loaded, err := connect(ctx, c, reopen)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	return &Transformers{config: c, reopen: reopen, limit: maxCalls, library: loaded}, nil
}

// Close ends the connections to KMS plugins and never fails. After Close, only Close may be called.
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

// pipe returns the path of a pipe that holds text once. The library opens a file by name; the text
// of a file readable only once, such as a shell's <(sops -d FILE), is never written to a disk.
func pipe(text []byte) (path string, release func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	go func() {
		_, _ = w.Write(text) // a failed reader returns its own error
		_ = w.Close()
	}()
	return fmt.Sprintf("/dev/fd/%d", r.Fd()), func() { _ = r.Close() }, nil
}

const (
	pluginPatience = 10 * time.Second       // how long connect waits for all KMS plugins together
	pluginPoll     = 100 * time.Millisecond // between two attempts
	serverID       = "etcdshift"            // a server's own ID, hashed by the library for its metrics
)

// library is a configuration loaded with k8s.io/apiserver, and its goroutines.
type library struct {
	encryptionconfig.StaticTransformers
	hash string // of the file
	stop context.CancelFunc
}

// connect loads the library from reopen and stops when ctx ends.
func connect(ctx context.Context, c config, reopen source) (library, error) {
	waiting, done := context.WithTimeout(ctx, pluginPatience)
	defer done()
	loaded, err := build(waiting, c, reopen)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return loaded, err
}

func build(waiting context.Context, c config, reopen source) (library, error) {
	if err := waitForAnswers(waiting, c.plugins); err != nil {
		return library{}, err
	}
	path, release, err := reopen()
	if err != nil {
		return library{}, err
	}
	defer release()
	running, stop := context.WithCancel(context.WithoutCancel(waiting))
	// The library asks each plugin for a data key before it returns, up to the file's timeout.
	inTime := context.AfterFunc(waiting, stop)
	loaded, err := encryptionconfig.LoadEncryptionConfig(running, path, false, serverID)
	if err == nil && len(c.plugins) > 0 {
		err = waitForHealth(waiting, loaded, c.plugins)
	}
	if !inTime() && err == nil {
		err = context.Cause(waiting)
	}
	if err != nil {
		stop()
		return library{}, err
	}
	return library{loaded.Transformers, loaded.EncryptionFileContentHash, stop}, nil
}

// use returns the library for one call, and a function that ends the call. After its number of
// calls a library is replaced; the new library has a new data key, like a restarted server.
func (t *Transformers) use(ctx context.Context) (l library, done func(), err error) {
	if len(t.config.plugins) > 0 && t.calls.Add(1) > t.limit {
		if err := t.renew(ctx); err != nil {
			return library{}, nil, fmt.Errorf("loading the encryption configuration again: %w", err)
		}
	}
	t.mu.RLock()
	return t.library, t.mu.RUnlock, nil
}

func (t *Transformers) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls.Load() <= t.limit {
		return nil // already renewed by another call
	}
	fresh, err := connect(ctx, t.config, t.reopen)
	if err != nil {
		return err
	}
	if fresh.hash != t.library.hash {
		fresh.stop()
		return errors.New("the file has changed")
	}
	t.library.stop()
	t.library = fresh
	t.calls.Store(1)
	return nil
}

// waitForAnswers returns when every plugin has answered a Status call; the error names the other
// plugins.
func waitForAnswers(ctx context.Context, plugins []plugin) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	errs := make([]error, len(plugins))
	var all sync.WaitGroup
	for i, p := range plugins {
		all.Go(func() {
			service, err := kmsv2.NewGRPCService(ctx, p.endpoint, p.name, p.timeout)
			if err != nil {
				errs[i] = fmt.Errorf("kms provider %s: %w", p, err)
				return
			}
			errs[i] = retry(ctx, p.String(), "no answer", func() error {
				_, err := service.Status(ctx)
				return err
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// waitForHealth returns when the library's own checks of the plugins succeed. The library caches a
// failure for three seconds.
func waitForHealth(ctx context.Context, loaded *encryptionconfig.EncryptionConfiguration, plugins []plugin) error {
	request := new(http.Request).WithContext(ctx) // the checks read only the context
	var names []string
	for _, p := range plugins {
		names = append(names, p.String())
	}
	return retry(ctx, strings.Join(names, ", "), "not healthy", func() error {
		var errs []error
		for _, check := range loaded.HealthChecks {
			errs = append(errs, check.Check(request))
		}
		return errors.Join(errs...)
	})
}

// retry calls try until it succeeds or ctx ends.
func retry(ctx context.Context, plugins, problem string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kms provider %s: %s within %s: %w", plugins, problem, pluginPatience, err)
		case <-time.After(pluginPoll):
		}
	}
}
