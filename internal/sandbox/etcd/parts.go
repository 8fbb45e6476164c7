package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcdshift/etcdshift/internal/sandbox"
)

const (
	memberPart  = "etcd"
	restorePart = "restore"

	maxRequestBytes = 64 << 20 // a value may be larger than the 1.5 MiB that servers take by default
	maxTxnOps       = 100_000
	token           = "etcdshift-rehearse"
)

// Parts are the parts that a program with this package has: see sandbox.Main.
func Parts() map[string]sandbox.Part {
	return map[string]sandbox.Part{memberPart: runMember, restorePart: runRestore}
}

// memberConfig is one member: its sockets, and those of its cluster as --initial-cluster has them.
// The data directory is its name.
type memberConfig struct{ Name, Endpoint, Peer, Cluster string }

// restoreConfig is the restore of one member.
type restoreConfig struct {
	memberConfig
	Options
	Snapshot string
}

func runRestore(_ context.Context, config []byte) error {
	var c restoreConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	log, err := logger()
	if err != nil {
		return err
	}
	err = snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath: c.Snapshot, SkipHashCheck: c.SkipHashCheck,
		RevisionBump: c.Bump, MarkCompacted: c.Bump > 0,
		Name: c.Name, OutputDataDir: c.Name, PeerURLs: []string{c.Peer}, InitialCluster: c.Cluster, InitialClusterToken: token,
	})
	if err != nil {
		return err
	}
	return disableAuth(log, filepath.Join(c.Name, "member", "snap", "db"))
}

// disableAuth lets clients in without the password of a user of etcd.
func disableAuth(log *zap.Logger, db string) error {
	b := backend.NewDefaultBackend(log, db)
	auth := schema.NewAuthBackend(log, b)
	tx := auth.BatchTx()
	tx.Lock()
	if tx.UnsafeReadAuthEnabled() {
		tx.UnsafeSaveAuthEnabled(false)
	}
	tx.Unlock()
	return b.Close()
}

// logger prints warnings, and what etcd dies of, to standard error.
func logger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	return config.Build()
}

func runMember(ctx context.Context, config []byte) error {
	var c memberConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	server, err := c.server()
	if err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(server)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case err := <-etcd.Err():
		return err
	case <-etcd.Server.StopNotify():
		return errors.New("the server has stopped")
	case <-ctx.Done():
		return nil
	}
}

// server is etcd's configuration. Data that are thrown away need no sync; a quota has been checked
// before.
func (c *memberConfig) server() (*embed.Config, error) {
	client, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(c.Peer)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Name, config.Dir = c.Name, c.Name
	config.InitialCluster, config.InitialClusterToken = c.Cluster, token
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.LogLevel, config.LogOutputs = "warn", []string{"stderr"}
	config.EnableGRPCGateway = false
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = -1
	config.MaxRequestBytes, config.MaxTxnOps = maxRequestBytes, maxTxnOps
	config.TickMs, config.ElectionMs = 20, 400 // nobody else shares the machine's network
	return config, nil
}
