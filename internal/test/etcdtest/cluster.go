package etcdtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
)

// StartCluster runs an etcd of n members, named m0 and so on, until the test ends.
func StartCluster(t testing.TB, n int) []*Server {
	t.Helper()
	var servers []*Server
	for range startAttempts {
		configs, err := clusterConfigs(t, n)
		require.NoError(t, err)
		if servers, err = startAll(t, configs); err == nil {
			break
		}
		require.ErrorContains(t, err, "address already in use")
	}
	return servers
}

// AddLearner adds a learner to a cluster, and starts it.
func AddLearner(t testing.TB, cluster []*Server) *Server {
	t.Helper()
	configs, err := clusterConfigs(t, 1)
	require.NoError(t, err)
	cfg := configs[0]
	cfg.Name, cfg.ClusterState = "learner", embed.ClusterStateFlagExisting
	peer := cfg.AdvertisePeerUrls[0].String()
	cfg.InitialCluster = strings.Join([]string{cluster[0].etcd.Config().InitialCluster, cfg.Name + "=" + peer}, ",")
	_, err = cluster[0].Client.MemberAddAsLearner(context.Background(), []string{peer})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the learner may ask any member, and does not start if the member lacks it
		return !slices.ContainsFunc(cluster,
			func(s *Server) bool { return len(s.etcd.Server.Cluster().Members()) <= len(cluster) })
	}, startTimeout, 10*time.Millisecond, "not all members know of the learner")
	servers, err := startAll(t, configs)
	require.NoError(t, err)
	return servers[0]
}

// clusterConfigs returns the configurations of the members of a new cluster.
func clusterConfigs(t testing.TB, n int) (configs []*embed.Config, err error) {
	urls, err := freeURLs(2 * n)
	var initial []string
	for i := range n {
		dir := t.TempDir()
		cfg, err := newConfig(filepath.Join(dir, "member.etcd"), filepath.Join(dir, "etcd.log"))
		if err != nil {
			return nil, err
		}
		cfg.Name = fmt.Sprintf("m%d", i)
		cfg.TickMs, cfg.ElectionMs = 50, 1000 // no unwanted elections on a busy machine
		cfg.StrictReconfigCheck = false       // otherwise AddLearner needs five healthy seconds
		useURLs(cfg, urls[2*i:2*i+2])
		initial = append(initial, cfg.InitialClusterFromName(cfg.Name))
		configs = append(configs, cfg)
	}
	for _, cfg := range configs {
		cfg.InitialCluster = strings.Join(initial, ",")
	}
	return configs, err
}

func useURLs(cfg *embed.Config, urls []url.URL) {
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = urls[:1], urls[:1]
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = urls[1:], urls[1:]
}

// startAll starts servers, which become ready only together.
func startAll(t testing.TB, configs []*embed.Config) (servers []*Server, err error) {
	defer func() {
		for _, s := range servers {
			if err != nil {
				s.Stop()
			}
		}
	}()
	for _, cfg := range configs {
		etcd, err := embed.StartEtcd(cfg)
		if err != nil {
			return servers, err
		}
		s := &Server{URL: cfg.ListenClientUrls[0].String(), etcd: etcd}
		t.Cleanup(s.Stop)
		servers = append(servers, s)
	}
	for i, s := range servers {
		select {
		case <-s.etcd.Server.ReadyNotify():
		case <-time.After(startTimeout):
			lines, _ := os.ReadFile(configs[i].LogOutputs[0])
			return servers, fmt.Errorf("%s is not ready after %s, etcd log:\n%s", configs[i].Name, startTimeout, lines)
		}
		if err := s.connect(); err != nil {
			return servers, err
		}
	}
	return servers, nil
}
