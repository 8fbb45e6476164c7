package save

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	peer "go.etcd.io/etcd/client/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

const story = `
grant 7 3600
put /registry/a one
put /registry/b size=2000000
put /registry/c size=3000000 lease=7
put /registry/d 1
put /registry/d 2
del /registry/a
compact 4
`

// to returns the options for servers without TLS.
func to(endpoints ...string) Options {
	return Options{
		Etcd: &clientv3.ConfigSpec{
			Endpoints: endpoints, DialTimeout: 5 * time.Second, Secure: &clientv3.SecureConfig{InsecureTransport: true},
		},
		MaxLag: DefaultMaxLag, pause: time.Millisecond,
	}
}

// withLog returns o with a log of its messages.
func withLog(o Options) (Options, *log) {
	l := &log{}
	o.Tell = l.add
	return o, l
}

type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// left requires that a folder contains exactly these files.
func left(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.Equal(t, names, found)
}

func TestSameAsEtcdctl(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.db"), filepath.Join(dir, "theirs.db")
	r, err := Run(t.Context(), ours, to(server.URL))
	require.NoError(t, err)
	_, err = peer.SaveWithVersion(t.Context(), zap.NewNop(), clientv3.Config{Endpoints: []string{server.URL}}, theirs)
	require.NoError(t, err)
	left(t, dir, "ours.db", "theirs.db")

	data, err := os.ReadFile(ours)
	require.NoError(t, err)
	info, err := os.Stat(ours)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.Equal(t, int64(len(data)), r.Bytes)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), r.SHA256)
	require.Empty(t, r.Refused)
	require.Empty(t, r.Failed)
	require.Empty(t, r.Warnings)

	facts := func(path string) (hash uint32, content [sha256.Size]byte, st snapshot.Status) {
		s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
		require.NoError(t, err)
		defer s.Close()
		served, err := s.Restored(t.Context(), 0)
		require.NoError(t, err)
		content, err = s.ContentHash(t.Context())
		require.NoError(t, err)
		st, err = s.Status(t.Context())
		require.NoError(t, err)
		st.Path, st.SHA256, st.Bytes, st.Pages, st.FreePages = "", "", 0, 0, 0 // the server writes between two saves
		return served.HashKV, content, st
	}
	hash, content, st := facts(ours)
	theirHash, theirContent, theirStatus := facts(theirs)
	require.Equal(t, theirHash, hash)
	require.Equal(t, theirContent, content)
	require.Equal(t, theirStatus, st)
	live, _, _ := etcdtest.HashKV(t, server, 0)
	require.Equal(t, live, hash)
	require.Equal(t, etcdtest.Revision(t, server), r.Revision)
	require.Equal(t, r.Revision, r.Member.Revision)
	require.Equal(t, st.Keys, r.Keys)
	require.Equal(t, etcdtest.StatusOf(t, ours).TotalKey, r.Keys)
	require.Equal(t, Member{
		Endpoint: server.URL, ID: r.Member.ID, Name: "default", Version: "3.7.3", Leader: true, Revision: r.Revision,
		RaftTerm: r.Member.RaftTerm, RaftIndex: r.Member.RaftIndex, RaftAppliedIndex: r.Member.RaftIndex,
	}, r.Member)

	restored := etcdtest.Start(t, etcdtest.Restore(t, ours))
	require.Equal(t, etcdtest.Dump(t, server, 0), etcdtest.Dump(t, restored, 0))
}

func TestNeverHalf(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	for name, start := range map[string]func(t *testing.T) string{
		"cut":       func(t *testing.T) string { return startProxy(t, server.URL, 1<<20).url },
		"stands":    func(t *testing.T) string { return startFake(t, server, fake{stands: true}) },
		"empty":     func(t *testing.T) string { return startFake(t, server, fake{empty: true}) },
		"drips":     func(t *testing.T) string { return startFake(t, server, fake{drips: true}) },
		"ends":      func(t *testing.T) string { return startFake(t, server, fake{parts: 3}) },
		"no digest": func(t *testing.T) string { return startFake(t, server, fake{drop: sha256.Size}) },
		"short":     func(t *testing.T) string { return startFake(t, server, fake{drop: 512}) },
		"flipped":   func(t *testing.T) string { return startFake(t, server, fake{flip: true}) },
		"more":      func(t *testing.T) string { return startFake(t, server, fake{more: true}) },
		"text":      func(t *testing.T) string { return startFake(t, server, fake{text: true}) },
		"old":       func(t *testing.T) string { return startFake(t, server, fake{ahead: 100}) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, o := t.TempDir(), to(start(t))
			o.patience = 300 * time.Millisecond
			_, err := Run(t.Context(), filepath.Join(dir, "out.db"), o)
			var untaken *Error
			require.ErrorAs(t, err, &untaken)
			require.Len(t, untaken.Untaken, rounds, "each round tries it: %v", err)
			left(t, dir)
			t.Log(err)
		})
	}
}

func TestInterrupted(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	dir, o := t.TempDir(), to(server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	o.Received = func(done, total int64) {
		require.Less(t, done, total)
		cancel()
	}
	_, err := Run(ctx, filepath.Join(dir, "out.db"), o)
	require.ErrorIs(t, err, context.Canceled)
	left(t, dir)
}

func TestExistingFile(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.db")
	require.NoError(t, os.WriteFile(out, []byte("mine"), 0o640))
	_, err := Run(t.Context(), out, to("127.0.0.1:1")) // contacts no member
	require.ErrorIs(t, err, fs.ErrExist)
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	left(t, dir, "out.db")
}

func TestNextMember(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	proxy, dir := startProxy(t, server.URL, 1<<20), t.TempDir()
	o, l := withLog(to(proxy.url, "127.0.0.1:1", server.URL))
	r, err := Run(t.Context(), filepath.Join(dir, "out.db"), o)
	require.NoError(t, err)
	require.Equal(t, server.URL, r.Member.Endpoint)
	require.Len(t, r.Failed, 1)
	require.Equal(t, proxy.url, r.Failed[0].Endpoint)
	require.Regexp(t, `^the download broke off after \d+ bytes of \d+: `, r.Failed[0].Reason)
	require.Len(t, r.Refused, 1)
	require.Contains(t, r.Refused[0].Reason, "connection refused")
	require.Contains(t, l.String(), proxy.url+" failed: the download broke off")
	sound(t, filepath.Join(dir, "out.db"))
	left(t, dir, "out.db")
}

// A restarting member is retried if no other member is left.
func TestNextRound(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	proxy := startProxy(t, server.URL, 1<<20)
	proxy.healed = true
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := Run(t.Context(), out, to(proxy.url))
	require.NoError(t, err)
	require.Len(t, r.Failed, 1)
	sound(t, out)
}

func sound(t *testing.T, path string) {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for err := range snapshot.Verify(t.Context(), s) {
		require.NoError(t, err)
	}
}

// secured starts a server that requires client certificates, and returns the options for the
// server.
func secured(t *testing.T) (*etcdtest.Server, Options) {
	t.Helper()
	info, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:2379"}, 1,
		x509.ExtKeyUsageClientAuth)
	require.NoError(t, err)
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"), func(cfg *embed.Config) {
		cfg.ClientTLSInfo = transport.TLSInfo{
			CertFile: info.CertFile, KeyFile: info.KeyFile, TrustedCAFile: info.CertFile, ClientCertAuth: true,
		}
		cfg.ListenClientUrls[0].Scheme = "https"
	})
	o := to(server.URL)
	o.Etcd.Secure = &clientv3.SecureConfig{Cert: info.CertFile, Key: info.KeyFile, Cacert: info.CertFile}
	return server, o
}

func TestTLS(t *testing.T) {
	server, o := secured(t)
	etcdtest.Run(t, server, story)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.db")
	for name, change := range map[string]func(*clientv3.SecureConfig){
		"certificate required|broken pipe|reset by peer|EOF": func(s *clientv3.SecureConfig) { s.Cert, s.Key = "", "" },
		"certificate signed by unknown authority":            func(s *clientv3.SecureConfig) { s.Cacert = "" },
		"no such file": func(s *clientv3.SecureConfig) { s.Cacert += "x" },
		"KeyFile and CertFile must both be present": func(s *clientv3.SecureConfig) { s.Key = "" },
	} {
		wrong, secure := o, *o.Etcd.Secure
		change(&secure)
		wrong.Etcd = &clientv3.ConfigSpec{Endpoints: o.Etcd.Endpoints, DialTimeout: o.Etcd.DialTimeout, Secure: &secure}
		_, err := Run(t.Context(), out, wrong)
		require.Error(t, err)
		require.Regexp(t, name, err.Error()) // the server's alert may come too late to be read
		left(t, dir)
	}
	secure := *o.Etcd.Secure
	secure.Cacert, secure.InsecureSkipVerify = "", true
	for _, endpoint := range []string{server.URL, strings.TrimPrefix(server.URL, "https://")} {
		_, err := Run(t.Context(), filepath.Join(t.TempDir(), "skip.db"), Options{
			Etcd: &clientv3.ConfigSpec{Endpoints: []string{endpoint}, DialTimeout: o.Etcd.DialTimeout, Secure: &secure},
		})
		require.NoError(t, err)
	}
	_, err := Run(t.Context(), out, o)
	require.NoError(t, err)
	sound(t, out)
}

func TestNoSecrets(t *testing.T) {
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
	etcdtest.Run(t, server, story)
	o := to(server.URL)
	o.Etcd.Auth = &clientv3.AuthConfig{Username: "root", Password: "sesame-open"}
	_, err := Run(t.Context(), filepath.Join(t.TempDir(), "early.db"), o)
	require.NoError(t, err, "a user is no error while authentication is off")

	ctx := t.Context()
	for _, name := range []string{"root", "other"} {
		_, err := server.Client.UserAdd(ctx, name, "sesame-open")
		require.NoError(t, err)
	}
	_, err = server.Client.RoleAdd(ctx, "root")
	require.NoError(t, err)
	_, err = server.Client.UserGrantRole(ctx, "root", "root")
	require.NoError(t, err)
	_, err = server.Client.AuthEnable(ctx)
	require.NoError(t, err)

	dir := t.TempDir()
	for want, auth := range map[string]*clientv3.AuthConfig{
		"user name is empty":         nil,
		"authentication failed":      {Username: "root", Password: "sesame-shut"},
		"permission denied":          {Username: "other", Password: "sesame-open"},
		"etcdserver: invalid auth t": {Token: "sesame-token"},
	} {
		o.Etcd.Auth = auth
		o, l := withLog(o)
		_, err := Run(ctx, filepath.Join(dir, "out.db"), o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error()+l.String(), "sesame")
		require.Equal(t, 1, strings.Count(err.Error(), server.URL), "no second try: %v", err)
		left(t, dir)
	}
	o.Etcd.Auth = &clientv3.AuthConfig{Username: "root", Password: "sesame-open"}
	r, err := Run(ctx, filepath.Join(dir, "out.db"), o)
	require.NoError(t, err)
	require.Equal(t, "default", r.Member.Name)
	data, err := os.ReadFile(filepath.Join(dir, "out.db"))
	require.NoError(t, err)
	require.False(t, bytes.Contains(data, []byte("sesame")))
}
