package apitest

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

// KMS is a running KMS v2 plugin: a gRPC server on a unix socket, with the service of k8s.io/kms
// and keys in memory. It decrypts with every key that is not forgotten, even after Rotate and
// Restart.
type KMS struct {
	Socket string // path of the unix socket

	mu       sync.Mutex
	server   *grpc.Server
	keys     map[string]value.Transformer
	current  string
	healthz  string
	hang     bool
	decrypts int
}

// StartKMS runs a plugin with one key, key-1, and stops it when the test ends.
func StartKMS(t testing.TB) *KMS {
	t.Helper()
	p := &KMS{Socket: KMSSocket(t), keys: make(map[string]value.Transformer), healthz: "ok"}
	p.Rotate(t)
	p.Restart(t)
	t.Cleanup(p.Stop)
	return p
}

// KMSSocket returns a path for a unix socket in a temporary folder of the test, without a listener.
// The path is short enough for every system (104 bytes on macOS).
func KMSSocket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Endpoint returns the socket as in an EncryptionConfiguration.
func (p *KMS) Endpoint() string { return "unix://" + p.Socket }

// Restart listens on the socket (again, after Stop).
func (p *KMS) Restart(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", p.Socket)
	require.NoError(t, err)
	server := grpc.NewServer(grpc.ConnectionTimeout(connectTimeout))
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService(p.Socket, connectTimeout, (*remote)(p)))
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // ends with Stop
}

// Stop ends the server and its connections; the keys stay.
func (p *KMS) Stop() {
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	server.Stop()
}

// Rotate creates a new key for later encryptions, and returns its ID: key-2, then key-3.
func (p *KMS) Rotate(t testing.TB) (id string) {
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

// Forget drops a key's secret; its id is not reused.
func (p *KMS) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id] = nil
}

// SetHealthz sets the reported health; only "ok" is healthy.
func (p *KMS) SetHealthz(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthz = word
}

// HangEncrypt makes later encryptions wait until their clients time out.
func (p *KMS) HangEncrypt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = true
}

// Decrypts returns the number of decryptions.
func (p *KMS) Decrypts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decrypts
}

// remote is the gRPC service of the plugin.
type remote KMS

func (r *remote) Status(context.Context) (*service.StatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &service.StatusResponse{Version: "v2", Healthz: r.healthz, KeyID: r.current}, nil
}

func (r *remote) Encrypt(ctx context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	r.mu.Lock()
	id, key, hang := r.current, r.keys[r.current], r.hang
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	encrypted, err := key.TransformToStorage(ctx, data, value.DefaultContext(id))
	return &service.EncryptResponse{Ciphertext: encrypted, KeyID: id}, err
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
