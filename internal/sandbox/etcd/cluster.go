package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcdshift/etcdshift/internal/sandbox"
)

// Options say how a snapshot is restored.
type Options struct {
	// Members is the number of members, one if 0.
	Members int
	// Bump is N of "--bump-revision N --mark-compacted", 0 for neither.
	Bump uint64
	// SkipHashCheck is "--skip-hash-check", for a file without a digest.
	SkipHashCheck bool
}

// Cluster is a restored snapshot, and etcd on it.
type Cluster struct {
	// Members are the members, with the same data at first.
	Members []*Member

	sandbox *sandbox.Sandbox
}

// Member is one etcd of a cluster.
type Member struct {
	// Name is m1, m2 and so on.
	Name string
	// Endpoint is the URL for clients, a unix socket.
	Endpoint string
	// Process is the server, nil before Start.
	Process *sandbox.Process
	// Client is connected to this member alone, nil before Start.
	Client *clientv3.Client

	config memberConfig
}

// Bytes is the room that a restored snapshot of that size needs: per member the data, its growth,
// and two files of 64 MB that etcd allocates for its log.
func Bytes(snapshot int64, members int) int64 {
	return int64(max(1, members)) * (snapshot + snapshot/4 + 160<<20)
}

// Restore runs "etcdutl snapshot restore" for each member. The error of a snapshot that etcdutl
// refuses has its reason.
func Restore(ctx context.Context, s *sandbox.Sandbox, snapshot string, o Options) (*Cluster, error) {
	snapshot, err := filepath.Abs(snapshot)
	if err != nil {
		return nil, err
	}
	c := &Cluster{sandbox: s, Members: newMembers(s, max(1, o.Members))}
	for _, m := range c.Members {
		p, err := s.Start(ctx, "restore-"+m.Name, restorePart,
			restoreConfig{memberConfig: m.config, Snapshot: snapshot, Options: o})
		if err == nil {
			err = p.Wait(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newMembers names the members and their sockets. Peers have names in the working directory: etcd
// takes no path there.
func newMembers(s *sandbox.Sandbox, n int) []*Member {
	members, peers := make([]*Member, n), make([]string, n)
	for i := range members {
		name := fmt.Sprintf("m%d", i+1)
		peer := "unix://" + name + ":2380"
		endpoint := "unix://" + filepath.Join(s.Path(), name+".sock")
		peers[i] = name + "=" + peer
		members[i] = &Member{Name: name, Endpoint: endpoint,
			config: memberConfig{Name: name, Endpoint: endpoint, Peer: peer}}
	}
	for _, m := range members {
		m.config.Cluster = strings.Join(peers, ",")
	}
	return members
}

// Start starts all members and waits until each takes part in the cluster. The error of one that
// dies has etcd's reason.
func (c *Cluster) Start(ctx context.Context) (err error) {
	all := ctx
	for _, m := range c.Members {
		if m.Process, err = c.sandbox.Start(ctx, "etcd-"+m.Name, memberPart, m.config); err != nil {
			return err
		}
		var stop context.CancelFunc
		all, stop = m.Process.While(all) // the others may wait for this one in vain
		defer stop()
	}
	for _, m := range c.Members {
		if err := m.Process.Until(all, m.ready); err != nil {
			return err
		}
	}
	return nil
}

// ready connects the client, and is nil once the member answers from a cluster with a leader. A
// client that finds no socket would wait a second before it tries again.
func (m *Member) ready(ctx context.Context) error {
	if m.Client == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(m.Endpoint, "unix://"))
		if err != nil {
			return err
		}
		_ = conn.Close()
		m.Client, err = clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint},
			MaxCallSendMsgSize: maxRequestBytes, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
	}
	_, err := m.Client.Get(ctx, "\x00")
	return err
}

// Client is for the first member.
func (c *Cluster) Client() *clientv3.Client { return c.Members[0].Client }

// Explain returns why a member has ended, if one has or does so within a second; else err.
func (c *Cluster) Explain(err error) error {
	var processes []*sandbox.Process
	for _, m := range c.Members {
		processes = append(processes, m.Process)
	}
	return sandbox.Explain(err, processes...)
}

// Stop closes clients and stops members, the last started first.
func (c *Cluster) Stop(ctx context.Context) {
	for _, m := range slices.Backward(c.Members) {
		if m.Client != nil {
			_ = m.Client.Close()
		}
		if m.Process != nil {
			m.Process.Stop(ctx)
		}
	}
}

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
		Name: c.Name, OutputDataDir: c.Name, PeerURLs: []string{c.Peer}, InitialCluster: c.Cluster,
		InitialClusterToken: token,
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
