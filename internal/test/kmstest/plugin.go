package kmstest

import (
	"context"
	"crypto/aes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/storage/value"
	transformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"
)

const connectTimeout = 5 * time.Second

// Plugin is a running KMS v2 plugin.
type Plugin struct {
	// Socket is the path of its unix socket.
	Socket string

	mu       sync.Mutex
	server   *grpc.Server
	keys     map[string]value.Transformer
	current  string
	healthz  string
	hang     bool
	decrypts int
}

// Start runs a plugin with one key, key-1, and stops it when the test ends.
func Start(t testing.TB) *Plugin {
	t.Helper()
	p := &Plugin{Socket: Socket(t), keys: make(map[string]value.Transformer), healthz: "ok"}
	p.Rotate(t)
	p.Restart(t)
	t.Cleanup(p.Stop)
	return p
}

// Socket is a path for a unix socket, in a folder that goes when the test ends. Nothing listens there.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Endpoint is the socket as an EncryptionConfiguration wants it.
func (p *Plugin) Endpoint() string { return "unix://" + p.Socket }

// Restart listens on the socket (again, after Stop).
func (p *Plugin) Restart(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", p.Socket)
	require.NoError(t, err)
	server := grpc.NewServer(grpc.ConnectionTimeout(connectTimeout))
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService(p.Socket, connectTimeout, (*remote)(p)))
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // it ends with Stop, and then without a cause
}

// Stop ends the server and its connections; the keys stay. It may be called more than once.
func (p *Plugin) Stop() {
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	server.Stop()
}

// Rotate makes a new key, which from now on is the one that seals, and returns its id: key-2, then key-3.
func (p *Plugin) Rotate(t testing.TB) (id string) {
	t.Helper()
	secret, err := transformer.GenerateKey(32)
	require.NoError(t, err)
	block, err := aes.NewCipher(secret)
	require.NoError(t, err)
	gcm, err := transformer.NewGCMTransformer(block)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = fmt.Sprintf("key-%d", len(p.keys)+1)
	p.keys[p.current] = gcm
	return p.current
}

// Forget loses a key's secret; its id is not given again.
func (p *Plugin) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id] = nil
}

// SetHealthz is what the plugin says of itself from now on; "ok" is the only good word.
func (p *Plugin) SetHealthz(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthz = word
}

// HangEncrypt makes every later request to seal something wait for as long as its client does.
func (p *Plugin) HangEncrypt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = true
}

// Decrypts is how often the plugin was asked to open something.
func (p *Plugin) Decrypts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decrypts
}

// remote is the plugin as its clients see it.
type remote Plugin

func (r *remote) Status(context.Context) (*service.StatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &service.StatusResponse{Version: "v2", Healthz: r.healthz, KeyID: r.current}, nil
}

func (r *remote) Encrypt(ctx context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hang {
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		return nil, ctx.Err()
	}
	sealed, err := r.keys[r.current].TransformToStorage(ctx, data, value.DefaultContext(r.current))
	if err != nil {
		return nil, err
	}
	return &service.EncryptResponse{Ciphertext: sealed, KeyID: r.current}, nil
}

func (r *remote) Decrypt(ctx context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decrypts++
	key := r.keys[request.KeyID]
	if key == nil {
		return nil, fmt.Errorf("no key %q", request.KeyID)
	}
	plain, _, err := key.TransformFromStorage(ctx, request.Ciphertext, value.DefaultContext(request.KeyID))
	return plain, err
}
