package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorded opens a recorded snapshot.
func recorded(t testing.TB, name string) *inspect.Reader {
	t.Helper()
	zipped, err := os.Open(filepath.Join("..", "..", "testdata", name+".db.gz"))
	require.NoError(t, err)
	defer zipped.Close()
	r, err := gzip.NewReader(zipped)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "in.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return opened(t, path)
}

func opened(t testing.TB, path string, prefixes ...string) *inspect.Reader {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return inspect.NewReader(s, nil, prefixes...)
}

func read(t testing.TB, r *inspect.Reader, o Options) Page {
	t.Helper()
	found, err := Read(context.Background(), r, o)
	require.NoError(t, err)
	if found.Status != nil { // the name of a temporary folder varies
		found.Status.Path = "in.db"
	}
	return Page{Report: found, Path: "in.db", Version: "(test)"}
}

func printed(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, write(&out))
	return out.String()
}

// TestRecorded checks that pages of recorded snapshots are always the same, have each section, load
// nothing, and allow only their one style sheet.
func TestRecorded(t *testing.T) {
	for _, name := range []string{"calico/before", "kcp/root-before", "kcp/cache-before", "storage/before",
		"hostile/v-memname", "hostile/v-alarm"} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			p := read(t, r, Options{})
			page := printed(t, p.HTML)
			again := read(t, r, Options{})
			require.Equal(t, page, printed(t, again.HTML))
			sections := []string{"identity", "verify", "doctor", "versions", "sizes", "activity", "objects",
				"history", "sign"}
			if !p.Verification.Sound {
				sections = []string{"identity", "verify", "doctor", "sign"}
			}
			require.Equal(t, sections, ids(page))
			requireQuiet(t, page)
		})
	}
}

func ids(page string) (out []string) {
	for _, m := range regexp.MustCompile(`<section id="([a-z]+)">`).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// requireQuiet checks that a page has no script, no address, and no style except the allowed one.
func requireQuiet(t testing.TB, page string) {
	t.Helper()
	_, rest, found := strings.Cut(page, "<style>")
	require.True(t, found)
	style, rest, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	hash := base64.StdEncoding.EncodeToString(sum[:])
	require.Contains(t, strings.ReplaceAll(page, "&#43;", "+"),
		"content=\"default-src &#39;none&#39;; style-src &#39;sha256-"+hash+"&#39;; ")
	require.NotContains(t, rest, "<style")
	require.NotRegexp(t, `(?i)<(script|iframe|img|object|embed|link|base|form)\b`, page)
	require.NotRegexp(t, `(?i)<[^>]*\s(style|src|on[a-z]+)=`, rest)
	require.NotRegexp(t, `<a href="[^#]`, page)
	require.NotRegexp(t, `(?i)(url|import|expression)\s*\(`, style)
}

// TestGolden compares the page of a small snapshot with a recorded page.
func TestGolden(t *testing.T) {
	p := read(t, recorded(t, "storage/before"), Options{Before: recorded(t, "storage/flipped")})
	p.Before.Old.Path = "old.db"
	_, got, _ := strings.Cut(printed(t, p.HTML), "</head>\n")
	golden := filepath.Join("testdata", "storage.html")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./internal/report -run TestGolden -update")
}
