package etcdtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	startAttempts   = 10
	startTimeout    = 60 * time.Second
	maxRequestBytes = 64 << 20 // values may far exceed a production server's limit of 1.5 MiB
	maxTxnOps       = 100_000
	quotaBytes      = 8 << 30
)

// Server is a running single-member etcd.
type Server struct {
	Client *clientv3.Client // connected to the server; closed by Stop
	URL    string           // for clients, http://127.0.0.1:PORT

	etcd *embed.Etcd
	stop sync.Once
}

// Change changes the configuration of a server before the start.
type Change func(*embed.Config)

// Start runs an etcd on dataDir until the test ends. dataDir is empty or absent (a new store), or
// comes from Restore or an earlier server. Writes are not synced to disk.
func Start(t testing.TB, dataDir string, changes ...Change) *Server {
	t.Helper()
	s, err := TryStart(t, dataDir, changes...)
	require.NoError(t, err)
	return s
}

// TryStart is Start for a data directory on which etcd may fail; the error has etcd's log.
func TryStart(t testing.TB, dataDir string, changes ...Change) (*Server, error) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "etcd.log")
	etcd, err := startRetrying(dataDir, log, changes)
	if err != nil {
		lines, _ := os.ReadFile(log)
		return nil, fmt.Errorf("%w, etcd log:\n%s", err, lines)
	}
	s := &Server{URL: etcd.Config().ListenClientUrls[0].String(), etcd: etcd}
	t.Cleanup(s.Stop)
	return s, s.connect()
}

// connect creates the client. It uses the server's certificate, if any, as client certificate too.
func (s *Server) connect() error {
	cfg := clientv3.Config{Endpoints: []string{s.URL}, DialTimeout: startTimeout, MaxCallSendMsgSize: maxRequestBytes}
	info := s.etcd.Config().ClientTLSInfo
	tls, err := info.ClientConfig()
	if err == nil {
		cfg.TLS = tls
		s.Client, err = clientv3.New(cfg)
	}
	return err
}

// Stop closes client and server. Another server may then start on the data directory.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.Client != nil {
			_ = s.Client.Close()
		}
		s.etcd.Close()
	})
}

// startRetrying chooses new ports if another process took a port before the listen, which fails
// before the data directory is touched.
func startRetrying(dataDir, log string, changes []Change) (etcd *embed.Etcd, err error) {
	for range startAttempts {
		etcd, err = startOnce(dataDir, log, changes)
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return etcd, err
}

func startOnce(dataDir, log string, changes []Change) (*embed.Etcd, error) {
	cfg, err := newConfig(dataDir, log)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		change(cfg)
	}
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		if waitForVersion(etcd) {
			return etcd, nil
		}
		err = fmt.Errorf("etcd on %s: no cluster version after %s", dataDir, startTimeout)
	case err = <-etcd.Err():
	case <-time.After(startTimeout):
		err = fmt.Errorf("etcd on %s: not ready after %s", dataDir, startTimeout)
	}
	etcd.Close()
	return nil, err
}

// waitForVersion waits until the members agree on the version of their cluster, which is a moment
// after they are ready: before, a snapshot has no version.
func waitForVersion(etcd *embed.Etcd) bool {
	for deadline := time.Now().Add(startTimeout); etcd.Server.ClusterVersion() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func newConfig(dataDir, log string) (*embed.Config, error) {
	urls, err := freeURLs(2)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Dir = dataDir
	cfg.Name = memberName
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{log}
	cfg.UnsafeNoFsync = true
	// A single member need not wait a second for its own election.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.MaxRequestBytes = maxRequestBytes
	cfg.MaxTxnOps = maxTxnOps
	cfg.QuotaBackendBytes = quotaBytes
	useURLs(cfg, urls)
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	return cfg, nil
}

// freeURLs returns URLs of n different free loopback ports.
func freeURLs(n int) ([]url.URL, error) {
	urls := make([]url.URL, n)
	for i := range urls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // held until all are chosen
		urls[i] = url.URL{Scheme: "http", Host: l.Addr().String()}
	}
	return urls, nil
}
