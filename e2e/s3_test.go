package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gateway is a running S3 server with TLS and its own CA. Its objects are files.
type gateway struct {
	root, ca, port string
	client         *http.Client
}

const (
	s3ID     = "etcdshift-test"
	s3Secret = "a-secret-that-nothing-may-print"
)

func startGateway(t *testing.T) *gateway {
	dir := t.TempDir()
	g := &gateway{root: filepath.Join(dir, "root"), ca: filepath.Join(dir, "ca.pem")}
	for _, bucket := range []string{"plain"} {
		require.NoError(t, os.MkdirAll(filepath.Join(g.root, bucket), 0o700))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "versions"), 0o700))
	key := filepath.Join(dir, "key.pem")
	g.client = selfSigned(t, g.ca, key)
	_, g.port = startReady(t, "versitygw", func(port string) bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, func(port string) []string {
		return []string{"--port", "127.0.0.1:" + port, "--access", s3ID, "--secret", s3Secret, "--cert", g.ca,
			"--key", key, "--quiet", "posix", "--versioning-dir", filepath.Join(dir, "versions"), g.root}
	})
	return g
}

// selfSigned creates a certificate for this machine, and a client that trusts only this
// certificate.
func selfSigned(t *testing.T, ca, keyFile string) *http.Client {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(ca, text, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = pool
	return &http.Client{Transport: transport}
}

// do sends a signed request (AWS Signature Version 4), and returns the answer.
func (g *gateway) do(t *testing.T, method, path, query string, body []byte, headers ...string) (string, http.Header) {
	req, err := http.NewRequest(method, "https://127.0.0.1:"+g.port+path, bytes.NewReader(body))
	require.NoError(t, err)
	if req.URL.RawQuery = query; query != "" && !strings.Contains(query, "=") {
		req.URL.RawQuery += "="
	}
	now := time.Now().UTC()
	digest := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	sum := md5.Sum(body)
	req.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(sum[:]))
	req.Header.Set("X-Amz-Content-Sha256", digest(body))
	req.Header.Set("X-Amz-Date", now.Format("20060102T150405Z"))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	names, lines := []string{"host"}, []string{"host:" + req.Host}
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") {
			names, lines = append(names, name), append(lines, name+":"+req.Header.Get(name))
		}
	}
	signed := strings.Join(names, ";")
	scope := now.Format("20060102") + "/us-east-1/s3/aws4_request"
	canonical := strings.Join([]string{method, path, req.URL.RawQuery, strings.Join(lines, "\n"), "", signed,
		digest(body)}, "\n")
	signing := []byte("AWS4" + s3Secret)
	for part := range strings.SplitSeq(scope, "/") {
		signing = mac(signing, part)
	}
	text := strings.Join([]string{"AWS4-HMAC-SHA256", req.Header.Get("X-Amz-Date"), scope, digest([]byte(canonical))},
		"\n")
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x",
		s3ID, scope, signed, mac(signing, text)))
	answer, err := g.client.Do(req)
	require.NoError(t, err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Less(t, answer.StatusCode, 300, "%s %s: %s", method, path, said)
	return string(said), answer.Header
}

// command returns an etcdshift command with the settings of the gateway.
func (g *gateway) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.Command(etcdshift(t), args...)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL=https://127.0.0.1:"+g.port, "AWS_ACCESS_KEY_ID="+s3ID,
		"AWS_SECRET_ACCESS_KEY="+s3Secret, "AWS_CA_BUNDLE="+g.ca, "AWS_CONFIG_FILE=/dev/null", "AWS_REGION=us-east-1")
	return cmd
}

// run runs a command, requires that its output has no secret, and returns the output and exit
// status.
func (g *gateway) run(t *testing.T, cmd *exec.Cmd) (said string, status int) {
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NotContains(t, string(text), s3Secret)
	return string(text), cmd.ProcessState.ExitCode()
}

// succeed runs a command that must exit with status 0.
func (g *gateway) succeed(t *testing.T, args ...string) string {
	said, status := g.run(t, g.command(t, args...))
	require.Zero(t, status, said)
	return said
}

// stored returns the content of an object from its file.
func (g *gateway) stored(t *testing.T, path string) []byte {
	text, err := os.ReadFile(filepath.Join(g.root, path))
	require.NoError(t, err)
	return text
}

func recording(t *testing.T, path ...string) []byte {
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "testdata"}, path...)...))
	require.NoError(t, err)
	return text
}

// Snapshots are read from and written to a bucket on a real S3 server.
func TestS3(t *testing.T) {
	g := startGateway(t)
	g.do(t, "PUT", "/plain/before.db.gz", "", recording(t, "calico", "before.db.gz"))
	old, newer := recording(t, "etcd", "etcd-3.5.db"), recording(t, "etcd", "etcd-3.6.db")
	g.do(t, "PUT", "/plain/other.db", "", newer)
	calico := []string{"migrate", "calico-v3", "s3://plain/before.db.gz", "s3://plain/out/after.db", "--report",
		"s3://plain/out/report.json"}

	t.Run("read", func(t *testing.T) {
		said := g.succeed(t, "status", "s3://plain/other.db", "-o", "json")
		require.Contains(t, said, fmt.Sprintf("%x", sha256.Sum256(newer)))
		require.Contains(t, said, `"s3://plain/other.db"`)
		require.Contains(t, g.succeed(t, "get", "s3://plain/before.db.gz", "namespaces"), "kube-system")
		require.Contains(t, g.succeed(t, "verify", "s3://plain/before.db.gz"), "sound")
	})
	t.Run("migrate", func(t *testing.T) {
		said := g.succeed(t, append(calico, "--dry-run")...)
		require.NoFileExists(t, filepath.Join(g.root, "plain/out/after.db"))
		require.Contains(t, said, "calico-v3")
		require.NoError(t, os.Remove(filepath.Join(g.root, "plain/out/report.json")))

		said = g.succeed(t, calico...)
		require.Contains(t, said, "etcdutl snapshot restore after.db")
		local := migrate(t, snapshotOf(t, "before"))
		want, err := os.ReadFile(local.path)
		require.NoError(t, err)
		require.Equal(t, sha256.Sum256(want), sha256.Sum256(g.stored(t, "plain/out/after.db")))
		require.Contains(t, string(g.stored(t, "plain/out/report.json")), `"s3://plain/out/after.db"`)
	})
	t.Run("again", func(t *testing.T) { // the same bytes count as written
		before, err := os.Stat(filepath.Join(g.root, "plain/out/after.db"))
		require.NoError(t, err)
		g.succeed(t, calico...)
		after, err := os.Stat(filepath.Join(g.root, "plain/out/after.db"))
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
	})
	t.Run("never over another", func(t *testing.T) {
		said, status := g.run(t, g.command(t, "migrate", "calico-v3", "s3://plain/before.db.gz", "s3://plain/other.db"))
		require.Equal(t, 1, status, said)
		require.Contains(t, said, "hint: an existing object is never overwritten")
		require.Equal(t, newer, g.stored(t, "plain/other.db"))
		said, status = g.run(t, g.command(t, "migrate", "calico-v3", "s3://plain/before.db.gz",
			"s3://plain/before.db.gz"))
		require.Equal(t, 2, status, said)
		said, status = g.run(t, g.command(t, "migrate", "calico-v3", "s3://plain/other.db", "s3://plain/out/after.db"))
		require.Equal(t, 1, status, said) // written by Put, but with other bytes
	})
	t.Run("version", func(t *testing.T) {
		g.do(t, "PUT", "/versioned", "", nil)
		g.do(t, "PUT", "/versioned", "versioning",
			[]byte("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"))
		_, first := g.do(t, "PUT", "/versioned/a.db", "", old)
		g.do(t, "PUT", "/versioned/a.db", "", newer)
		said := g.succeed(t, "status", "s3://versioned/a.db?versionId="+first.Get("X-Amz-Version-Id"), "-o", "json")
		require.Contains(t, said, fmt.Sprintf("%x", sha256.Sum256(old)))
		require.Contains(t, g.succeed(t, "status", "s3://versioned/a.db", "-o", "json"),
			fmt.Sprintf("%x", sha256.Sum256(newer)))
	})
	t.Run("object lock", func(t *testing.T) {
		g.do(t, "PUT", "/locked", "", nil, "X-Amz-Bucket-Object-Lock-Enabled: true")
		g.do(t, "PUT", "/locked", "object-lock",
			[]byte("<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>"+
				"<Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>"))
		g.succeed(t, "migrate", "calico-v3", "s3://plain/before.db.gz", "s3://locked/after.db")
		require.Equal(t, g.stored(t, "plain/out/after.db"), g.stored(t, "locked/after.db"))
	})
	t.Run("failed", func(t *testing.T) { // a report is written, but no output
		said, status := g.run(t, g.command(t, "compact", "s3://plain/out/report.json", "s3://plain/no/after.db",
			"--report", "s3://plain/no/report.json"))
		require.Equal(t, 1, status, said)
		require.NoFileExists(t, filepath.Join(g.root, "plain/no/after.db"))
		require.NotEmpty(t, g.stored(t, "plain/no/report.json"))
	})
	t.Run("errors", func(t *testing.T) { testRefusals(t, g) })
	t.Run("odd keys", func(t *testing.T) { testOddKeys(t, g) })
	t.Run("in parts", func(t *testing.T) { testParts(t, g) })
}

// testRefusals: the error of a store has a hint.
func testRefusals(t *testing.T, g *gateway) {
	for name, change := range map[string][2]string{
		"AWS_SECRET_ACCESS_KEY=wrong":          {"SignatureDoesNotMatch", "check the credentials"},
		"AWS_ACCESS_KEY_ID=wrong":              {"No user exists", "check the credentials"},
		"AWS_CA_BUNDLE=":                       {"certificate", "AWS_CA_BUNDLE"},
		"AWS_ENDPOINT_URL=https://127.0.0.1:1": {"refused", "AWS_ENDPOINT_URL"},
	} {
		for path, status := range map[string]int{"status": 1, "doctor": 5} {
			cmd := g.command(t, path, "s3://plain/other.db")
			cmd.Env = append(cmd.Env, name)
			said, got := g.run(t, cmd)
			require.Equal(t, status, got, said)
			require.Contains(t, said, change[0])
			require.Contains(t, said, "\nhint: ")
			require.Contains(t, said, change[1])
		}
	}
	said, status := g.run(t, g.command(t, "status", "s3://plain/none.db"))
	require.Equal(t, 1, status, said)
	require.Contains(t, said, "no such object")
	said, _ = g.run(t, g.command(t, "status", "s3://nowhere/none.db"))
	require.Contains(t, said, "no such bucket")
}

// testOddKeys: characters of a key arrive unchanged.
func testOddKeys(t *testing.T, g *gateway) {
	for i, key := range []string{"a b%41+c.db", "ü#?x=1&y;z.db", "'\"<>\\`$(id).db"} {
		place := fmt.Sprintf("s3://plain/odd%d/", i)
		g.succeed(t, "compact", "s3://plain/other.db", place+key)
		require.Contains(t, g.succeed(t, "verify", place+key), "sound")
		g.succeed(t, "fleet", "list", place, place+"list.json", "--name", "odd", "--match", "*.db")
		g.succeed(t, "fleet", "run", place+"list.json", "--index", "0", "--", "compact", "{in}", "{result}.db",
			"--report", "{result}.json")
		require.Contains(t, g.succeed(t, "fleet", "summary", place+"list.json"), "\n1 ")
	}
}

// testParts writes multipart objects.
func testParts(t *testing.T, g *gateway) {
	s := startStore(t, filepath.Join(t.TempDir(), "etcd"))
	value := make([]byte, 1<<20)
	for i := range 50 {
		_, _ = rand.Read(value)
		_, err := s.Put(context.Background(), fmt.Sprintf("/registry/noise/%d", i), string(value))
		require.NoError(t, err)
	}
	g.succeed(t, "save", "s3://plain/big.db", "--endpoints", s.url)
	_, head := g.do(t, "HEAD", "/plain/big.db", "", nil)
	require.Contains(t, head.Get("Etag"), "-", "the object has one part")
	require.Greater(t, len(g.stored(t, "plain/big.db")), 48<<20)
	require.Contains(t, g.succeed(t, "verify", "s3://plain/big.db"), "sound")

	_, err := s.Put(context.Background(), "/registry/noise/0", "other")
	require.NoError(t, err)
	g.succeed(t, "save", "s3://plain/big2.db", "--endpoints", s.url)
	t.Run("two writers", func(t *testing.T) {
		var written atomic.Int32
		var both sync.WaitGroup
		for _, in := range []string{"big", "big2"} {
			cmd := g.command(t, "compact", "s3://plain/"+in+".db", "s3://plain/race.db")
			both.Go(func() {
				if said, err := cmd.CombinedOutput(); err == nil {
					written.Add(1)
				} else if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(said), "never overwritten") {
					t.Errorf("%s", said)
				}
			})
		}
		both.Wait()
		require.EqualValues(t, 1, written.Load())
		require.Contains(t, g.succeed(t, "verify", "s3://plain/race.db"), "sound")
	})
	for name, signal := range map[string]os.Signal{"killed": syscall.SIGKILL, "interrupted": os.Interrupt} {
		t.Run(name, func(t *testing.T) { g.testStopped(t, name, signal) })
	}
}

// testStopped ends a command during its upload, and requires that no object and no file is left.
func (g *gateway) testStopped(t *testing.T, name string, signal os.Signal) {
	path, temp := "plain/"+name+".db", t.TempDir()
	cmd := g.command(t, "compact", "s3://plain/big.db", "s3://"+path)
	through, port := g.slow(t, 20<<20)
	cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL=https://127.0.0.1:"+port, "TMPDIR="+temp)
	require.NoError(t, cmd.Start())
	<-through
	require.NoError(t, cmd.Process.Signal(signal))
	_ = cmd.Wait()
	require.NoFileExists(t, filepath.Join(g.root, path))
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	uploads, _ := g.do(t, "GET", "/plain", "uploads", nil)
	if signal == os.Interrupt {
		require.Equal(t, 130, cmd.ProcessState.ExitCode())
		require.NotContains(t, uploads, name+".db")
	}
	g.succeed(t, "compact", "s3://plain/big.db", "s3://"+path) // remains of a killed upload do no harm
}

// slow returns a port in front of the gateway that forwards a number of bytes, and afterwards only
// as many as an interruption needs.
func (g *gateway) slow(t *testing.T, most int64) (through chan struct{}, port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	through = make(chan struct{})
	var sent atomic.Int64
	var once sync.Once
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", "127.0.0.1:"+g.port)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() {
				defer out.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := in.Read(buf)
					if sent.Add(int64(n)) > most {
						once.Do(func() { close(through) })
						time.Sleep(20 * time.Millisecond)
					}
					if _, failed := out.Write(buf[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return through, port
}
