package encryption

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

// silent listens on a socket, accepts connections and never answers.
func silent(t *testing.T) (socket string) {
	socket = apitest.KMSSocket(t)
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
		}
	}()
	return socket
}

// A plugin without an answer is an error after ten seconds, regardless of the timeout in the file.
// The error names its socket, but no sockets of healthy plugins.
func TestDeadSocketsAreNamedAfterTenSeconds(t *testing.T) {
	alive := apitest.StartKMS(t)
	absent, mute := apitest.KMSSocket(t), silent(t)
	file := apitest.KMSSocket(t)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	sick := apitest.StartKMS(t)
	sick.SetHealthz("locked")
	stuck := apitest.StartKMS(t)
	stuck.HangEncrypt()
	patient := func(socket string) string {
		return fmt.Sprintf("kms: {apiVersion: v2, name: slow, timeout: 1h, endpoint: 'unix://%s'}", socket)
	}
	cases := map[string]struct {
		providers     []string
		named, hidden []string
	}{
		"nothing there":    {[]string{plugged("dead", "unix://"+absent)}, []string{`"dead" at unix://` + absent}, nil},
		"no socket":        {[]string{plugged("dead", "unix://"+file)}, []string{`"dead" at unix://` + file}, nil},
		"never answers":    {[]string{plugged("mute", "unix://"+mute)}, []string{`"mute" at unix://` + mute}, nil},
		"for an hour":      {[]string{patient(mute)}, []string{`"slow" at unix://` + mute}, nil},
		"nothing, an hour": {[]string{patient(absent)}, []string{`"slow" at unix://` + absent}, nil},
		"one of three": {
			[]string{plugged("alive", alive.Endpoint()), plugged("dead", "unix://"+absent),
				plugged("mute", "unix://"+mute)},
			[]string{`"dead" at unix://` + absent, `"mute" at unix://` + mute}, []string{alive.Socket, "alive"},
		},
		"not healthy": {
			[]string{plugged("sick", sick.Endpoint())},
			[]string{`"sick" at ` + sick.Endpoint(), "unexpected healthz status: locked"}, nil,
		},
		"hangs later": {
			[]string{strings.Replace(plugged("stuck", stuck.Endpoint()), "v2,", "v2, timeout: 1h,", 1)},
			[]string{`"stuck" at ` + stuck.Endpoint()}, nil,
		},
	}
	var all sync.WaitGroup
	errs, took := make(map[string]error), make(map[string]time.Duration)
	var mu sync.Mutex
	for name, tc := range cases {
		path := configuration(t, rule("secrets", append(tc.providers, "identity: {}")...))
		all.Go(func() {
			start := time.Now()
			_, err := Load(context.Background(), path)
			mu.Lock()
			defer mu.Unlock()
			errs[name], took[name] = err, time.Since(start)
		})
	}
	all.Wait()
	for name, tc := range cases {
		require.Error(t, errs[name], name)
		require.InDelta(t, pluginPatience.Seconds(), took[name].Seconds(), 2, name)
		for _, want := range append(tc.named, "encryption.yaml", "within 10s") {
			require.ErrorContains(t, errs[name], want, name)
		}
		for _, hidden := range tc.hidden {
			require.NotContains(t, errs[name].Error(), hidden, name)
		}
	}
}

func TestLoadWaitsForALatePlugin(t *testing.T) {
	late := apitest.StartKMS(t)
	late.Stop()
	path := configuration(t, rule("secrets", plugged("late", late.Endpoint())))
	var loaded *Transformers
	var err error
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		loaded, err = Load(context.Background(), path)
	}()
	time.Sleep(300 * time.Millisecond)
	late.Restart(t)
	<-finished
	require.NoError(t, err)
	decrypts(t, loaded, secrets, here, encrypt(t, loaded, secrets, here, text), text, false)
	require.NoError(t, loaded.Close())
}

// Load fails with the error of its context. A context that ends after Load has no effect.
func TestLoadAndContexts(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	_, err := Load(ctx, configuration(t, rule("secrets", plugged("mute", "unix://"+silent(t)))))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(start), 5*time.Second)

	ctx, cancel = context.WithCancel(context.Background())
	loaded, err := Load(ctx, configuration(t, rule("secrets", plugged("vault", apitest.StartKMS(t).Endpoint()))))
	require.NoError(t, err)
	cancel()
	foreign := encrypt(t, loaded, secrets, here, text)
	decrypts(t, loaded, secrets, here, foreign, text, false)
	require.NoError(t, loaded.Close())
}

// Values of an older key of the plugin are stale; values of a lost key are undecryptable.
func TestKMSKeyRotation(t *testing.T) {
	plugin := apitest.StartKMS(t)
	before := with(t, plugged("vault", plugin.Endpoint()))
	stored := encrypt(t, before, secrets, here, text)
	decrypts(t, before, secrets, here, stored, text, false)

	require.Equal(t, "key-2", plugin.Rotate(t))
	decrypts(t, before, secrets, here, stored, text, false) // like a server that has not called the plugin since
	after := with(t, plugged("vault", plugin.Endpoint()))
	decrypts(t, after, secrets, here, stored, text, true)
	fresh := encrypt(t, after, secrets, here, text)
	decrypts(t, after, secrets, here, fresh, text, false)
	decrypts(t, with(t, plugged("vault", plugin.Endpoint())), secrets, here, fresh, text, false)

	plugin.Forget("key-1")
	decrypts(t, after, secrets, here, stored, text, true) // the data key is cached by now
	refused(t, with(t, plugged("vault", plugin.Endpoint())), secrets, here, stored,
		"by kms:v2:vault: the KMS plugin does not decrypt it")
}

// All values of one data key cost one call. After the plugin is gone, no value is called
// undecryptable.
func TestKMSPluginGoneLater(t *testing.T) {
	plugin := apitest.StartKMS(t)
	writer := with(t, plugged("vault", plugin.Endpoint()))
	foreign := encrypt(t, with(t, plugged("vault", plugin.Endpoint())), secrets, here, text)
	asked := plugin.Decrypts()
	for i := range 50 {
		key := fmt.Sprintf("%s-%d", here, i)
		decrypts(t, writer, secrets, key, encrypt(t, writer, secrets, key, text), text, false)
	}
	require.Equal(t, asked, plugin.Decrypts())
	own := encrypt(t, writer, secrets, here, text)

	plugin.Stop()
	decrypts(t, writer, secrets, here, own, text, false)
	_, _, err := writer.Decrypt(context.Background(), secrets, []byte(here), foreign)
	require.ErrorContains(t, err, "decrypting a value of kms:v2:vault: the KMS plugin does not answer (")
	require.NotErrorIs(t, err, encoding.ErrEncrypted)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err = writer.Decrypt(ctx, secrets, []byte(here), foreign)
	require.ErrorIs(t, err, context.Canceled)
}

// Close ends the goroutines and the connection, and so does a failed Load.
func TestCloseLeavesNothingBehind(t *testing.T) {
	plugin := apitest.StartKMS(t)
	path := configuration(t, rule("secrets", plugged("vault", plugin.Endpoint()), plugged("other", plugin.Endpoint())))
	masked := configuration(t, rule("'*.*'", plugged("vault", plugin.Endpoint())), rule("secrets", "identity: {}"))
	for range 5 {
		loaded, err := Load(context.Background(), path)
		require.NoError(t, err)
		require.NoError(t, loaded.Close())
		require.NoError(t, loaded.Close())
		_, err = Load(context.Background(), masked)
		require.ErrorContains(t, err, "masked")
	}
	require.NoError(t, (*Transformers)(nil).Close())
	plugin.Stop()
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		all := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(all, "encryptionconfig.") && !strings.Contains(all, "kmsv2.") &&
			!strings.Contains(all, "grpc.(*ClientConn)")
	}, 5*time.Second, 20*time.Millisecond)
}
