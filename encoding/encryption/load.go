package encryption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
)

const (
	pluginPatience = 10 * time.Second       // how long Load waits for KMS plugins, all together
	pluginPoll     = 100 * time.Millisecond // between two questions to a plugin that answers, but not well
	serverID       = "etcdshift"            // stands where an API server has its own; used in metrics only, hashed
)

// Transformers open and seal values as an API server with one EncryptionConfiguration does. A nil *Transformers has no
// configuration: what is in the clear is opened, nothing is sealed. It may be used from several goroutines.
type Transformers struct {
	config config
	static encryptionconfig.StaticTransformers
	stop   context.CancelFunc
}

// Load reads the EncryptionConfiguration in the file path, which may be a pipe, and connects to its KMS plugins. Errors
// name the file and the field, never a key. A KMS plugin that does not answer, or not as a healthy KMS v2 plugin, is an
// error after ten seconds that names its socket. ctx is for loading only; Close ends what Load has started.
func Load(ctx context.Context, path string) (*Transformers, error) {
	text, again, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration: %w", err)
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	t, err := connect(ctx, c, again)
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), t.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", path, err)
	}
	return t, nil
}

// connect builds the transformers, from what again gives.
func connect(ctx context.Context, c config, again func() (path string, release func(), err error)) (*Transformers, error) {
	waiting, done := context.WithTimeout(ctx, pluginPatience)
	defer done()
	if err := await(waiting, c.plugins); err != nil {
		return nil, err
	}
	path, release, err := again()
	if err != nil {
		return nil, err
	}
	defer release()

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	// The library asks each plugin for a data key before it returns, for as long as the file's timeout allows.
	inTime := context.AfterFunc(waiting, stop)
	loaded, err := encryptionconfig.LoadEncryptionConfig(running, path, false, serverID)
	if err == nil {
		err = healthy(waiting, loaded.HealthChecks, c.plugins)
	}
	if !inTime() && err == nil {
		err = context.Cause(waiting)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &Transformers{config: c, static: loaded.Transformers, stop: stop}, nil
}

// Close ends the connections to KMS plugins. It may be called more than once and never fails; Open and Seal must not be
// called after it.
func (t *Transformers) Close() error {
	if t != nil {
		t.stop()
	}
	return nil
}

// read returns the file's text, and what gives the library, which opens a file by name, the same text again: the path
// itself, or for what can be read only once (a shell's <(sops -d FILE)) a pipe. Decrypted keys never go to a disk.
func read(path string) (text []byte, again func() (path string, release func(), err error), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if text, err = os.ReadFile(path); err != nil {
		return nil, nil, err
	}
	return text, func() (string, func(), error) {
		if info.Mode().IsRegular() {
			return path, func() {}, nil
		}
		return pipe(text)
	}, nil
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

// await returns when every plugin has answered a Status call, or an error that names each that has not when ctx ends.
func await(ctx context.Context, plugins []plugin) error {
	errs := make([]error, len(plugins))
	var all sync.WaitGroup
	for i, p := range plugins {
		all.Go(func() { errs[i] = p.await(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p plugin) await(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	service, err := kmsv2.NewGRPCService(ctx, p.endpoint, p.name, p.timeout)
	if err != nil {
		return fmt.Errorf("kms provider %s: %w", p, err)
	}
	for {
		if _, err = service.Status(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kms provider %s: no answer within %s: %w", p, pluginPatience, err)
		case <-time.After(pluginPoll):
		}
	}
}

// healthy returns when the library's own checks of the plugins succeed, at the latest when ctx ends. The library keeps a
// bad answer for three seconds.
func healthy(ctx context.Context, checks []healthz.HealthChecker, plugins []plugin) error {
	if len(plugins) == 0 {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	for {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check.Check(request))
		}
		if err = errors.Join(errs...); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kms provider %s: not healthy within %s: %w", list(plugins), pluginPatience, err)
		case <-time.After(pluginPoll):
		}
	}
}

func list(plugins []plugin) string {
	var names []string
	for _, p := range plugins {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}
