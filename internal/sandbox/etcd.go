package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/etcdshift/etcdshift/snapshot"
)

// RestoreOptions configure the restore of a snapshot.
type RestoreOptions struct {
	// Members is the number of members; 0 means one.
	Members int
	// Bump is N of "--bump-revision N --mark-compacted"; 0 means neither.
	Bump uint64
	// SkipHashCheck is "--skip-hash-check", for a file without a digest.
	SkipHashCheck bool
}

// Cluster is a restored snapshot with etcd members.
type Cluster struct {
	// Members have the same data at first.
	Members []*Member

	sandbox *Sandbox
}

// Member is one etcd server of a cluster.
type Member struct {
	// Name is m1, m2 and so on.
	Name string
	// Endpoint is the client URL, a unix socket.
	Endpoint string
	// Process is the server, nil before Start.
	Process *Process
	// Client is connected only to this member, nil before Start.
	Client *clientv3.Client

	config memberConfig
}

// RestoredBytes returns the disk space for a restored snapshot of a size: per member the data, its
// growth, and two log files of 64 MB that etcd preallocates.
func RestoredBytes(snapshot int64, members int) int64 {
	return int64(max(1, members)) * (snapshot + snapshot/4 + 160<<20)
}

// RestoreTime bounds the time of a restore: on some damaged files a restore never ends.
func RestoreTime(bytes int64) time.Duration {
	const slowest = 2 << 20 // bytes a second
	return time.Minute + time.Duration(bytes/slowest)*time.Second
}

// IsPlain reports whether etcdutl can read the file of a snapshot: it reads neither compressed
// files, nor standard input, nor the log of a data directory.
func IsPlain(s *snapshot.Snapshot) bool {
	return s.Compression() == "" && s.Path() != "-" && s.DataDir() == nil
}

// PlainFile returns the path of a snapshot, or of an expanded copy in dir that the caller removes.
func PlainFile(dir string, s *snapshot.Snapshot) (path string, err error) {
	if IsPlain(s) {
		return s.Path(), nil
	}
	path = filepath.Join(dir, "expanded.db")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, s.Image())
	return path, errors.Join(err, f.Close())
}

// Restore runs "etcdutl snapshot restore" for each member, without the users of etcd. The error for
// a refused snapshot has etcdutl's reason.
func Restore(ctx context.Context, s *Sandbox, file string, o RestoreOptions) (*Cluster, error) {
	c := &Cluster{sandbox: s, Members: newMembers(s, max(1, o.Members))}
	for _, m := range c.Members {
		err := RestoreMember(ctx, s, file, MemberRestore{
			Name: m.config.Name, DataDir: m.config.Name, PeerURLs: []string{m.config.Peer},
			Cluster: m.config.Cluster, Token: token, Bump: o.Bump, SkipHashCheck: o.SkipHashCheck, withoutAuth: true,
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// MemberRestore has the flags of "etcdutl snapshot restore" for a member.
type MemberRestore struct {
	Name     string
	PeerURLs []string
	// DataDir and WALDir may be relative to the sandbox; WALDir "" is member/wal in DataDir.
	DataDir, WALDir string
	// Cluster is --initial-cluster, Token --initial-cluster-token.
	Cluster, Token string
	// Bump is N of "--bump-revision N --mark-compacted"; 0 means neither.
	Bump          uint64
	SkipHashCheck bool

	withoutAuth bool
}

// restoreConfig is the configuration of the part "restore".
type restoreConfig struct {
	MemberRestore
	Snapshot    string
	WithoutAuth bool
}

// RestoreMember runs "etcdutl snapshot restore" once, in a child process.
func RestoreMember(ctx context.Context, s *Sandbox, file string, m MemberRestore) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	// names may contain slashes
	p, err := s.Start(ctx, fmt.Sprintf("restore-%d", s.started()+1), restorePart,
		restoreConfig{m, file, m.withoutAuth})
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// newMembers names the members and their sockets. Peer sockets are in the working directory,
// because etcd accepts no path in a peer URL.
func newMembers(s *Sandbox, n int) []*Member {
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

// Start starts all members and waits until each is part of the cluster. The error for a crashed
// member has etcd's reason.
func (c *Cluster) Start(ctx context.Context) (err error) {
	all := ctx
	for _, m := range c.Members {
		if m.Process, err = c.sandbox.Start(ctx, "etcd-"+m.Name, memberPart, m.config); err != nil {
			return err
		}
		var stop context.CancelFunc
		all, stop = m.Process.While(all) // if this one ends, the others could wait forever
		defer stop()
	}
	for _, m := range c.Members {
		if err := m.Process.Until(all, m.ready); err != nil {
			return err
		}
	}
	return nil
}

// ready connects the client, and returns nil once the member answers from a cluster with a leader.
// It first checks for the socket: a client that finds none waits a second before a retry.
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

// Client returns the client of the first member.
func (c *Cluster) Client() *clientv3.Client { return c.Members[0].Client }

// Explain returns the reason why a member has ended, if one ends within a second, otherwise err.
func (c *Cluster) Explain(err error) error {
	var processes []*Process
	for _, m := range c.Members {
		processes = append(processes, m.Process)
	}
	return Explain(err, processes...)
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
	maxRequestBytes = 64 << 20 // values may exceed the servers' default of 1.5 MiB
	maxTxnOps       = 100_000
	token           = "etcdshift-rehearse"
)

// memberConfig configures one member: its sockets, and the cluster as for --initial-cluster. Its
// name is the data directory.
type memberConfig struct{ Name, Endpoint, Peer, Cluster string }

func runRestore(_ context.Context, config []byte) error {
	var c restoreConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	log, err := logger()
	if err != nil {
		return err
	}
	err = etcdutl.NewV3(log).Restore(etcdutl.RestoreConfig{
		SnapshotPath: c.Snapshot, SkipHashCheck: c.SkipHashCheck,
		RevisionBump: c.Bump, MarkCompacted: c.Bump > 0,
		Name: c.Name, OutputDataDir: c.DataDir, OutputWALDir: c.WALDir, PeerURLs: c.PeerURLs,
		InitialCluster: c.Cluster, InitialClusterToken: c.Token,
	})
	if err != nil || !c.WithoutAuth {
		return err
	}
	return disableAuth(log, filepath.Join(c.DataDir, "member", "snap", "db"))
}

// disableAuth removes the need for an etcd password.
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

// logger prints warnings and fatal errors of etcd to standard error.
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

// server returns etcd's configuration. Temporary data needs no sync; the quota was checked before.
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
	config.TickMs, config.ElectionMs = 20, 400 // the network is local
	return config, nil
}
