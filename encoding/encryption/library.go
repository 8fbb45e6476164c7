package encryption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
)

const (
	pluginPatience = 10 * time.Second       // how long connect waits for KMS plugins, all together
	pluginPoll     = 100 * time.Millisecond // between two questions to a plugin that answers, but not well
	serverID       = "etcdshift"            // stands where an API server has its own; used in metrics only, hashed
)

// library is what k8s.io/apiserver made of a configuration, and runs for it.
type library struct {
	encryptionconfig.StaticTransformers
	hash string // of the file
	stop context.CancelFunc
}

// connect builds the library from what again gives. It ends when ctx does.
func connect(ctx context.Context, c config, again source) (library, error) {
	waiting, done := context.WithTimeout(ctx, pluginPatience)
	defer done()
	loaded, err := build(waiting, c, again)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return loaded, err
}

func build(waiting context.Context, c config, again source) (library, error) {
	if err := await(waiting, c.plugins); err != nil {
		return library{}, err
	}
	path, release, err := again()
	if err != nil {
		return library{}, err
	}
	defer release()
	running, stop := context.WithCancel(context.WithoutCancel(waiting))
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
		return library{}, err
	}
	return library{loaded.Transformers, loaded.EncryptionFileContentHash, stop}, nil
}

// use gives the library for one call, and what ends the call. A library that has served its number of calls is replaced
// by a new one, once the others have ended theirs; it has a new data key, as a server has that was started again.
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
		return nil // another call has just done it
	}
	fresh, err := connect(ctx, t.config, t.again)
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
