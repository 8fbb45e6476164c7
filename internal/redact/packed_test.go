package redact_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"maps"
	url2 "net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
)

const packedSecret = "hunter2-MARK-x7"

// squeezed packs a text.
func squeezed(t testing.TB, text string, pack func(io.Writer) io.WriteCloser) string {
	var out bytes.Buffer
	to := pack(&out)
	_, err := io.WriteString(to, text)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return out.String()
}

func gzipped(t testing.TB, text string) string {
	return squeezed(t, text, func(to io.Writer) io.WriteCloser { return gzip.NewWriter(to) })
}

func deflated(t testing.TB, text string) string {
	return squeezed(t, text, func(to io.Writer) io.WriteCloser {
		w, err := flate.NewWriter(to, flate.BestCompression)
		require.NoError(t, err)
		return w
	})
}

func zipped(t testing.TB, text string) string {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	file, err := archive.Create("original")
	require.NoError(t, err)
	_, err = io.WriteString(file, text)
	require.NoError(t, err)
	require.NoError(t, archive.Close())
	return out.String()
}

// wrap breaks a text into lines, as in base64 and PEM.
func wrap(text string, width int, gap string) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), gap)
}

// forms returns encodings of a text.
func forms(t testing.TB) map[string]func(string) string {
	std, raw, url := base64.StdEncoding.EncodeToString, base64.RawStdEncoding.EncodeToString,
		base64.RawURLEncoding.EncodeToString
	b := func(s string) []byte { return []byte(s) }
	return map[string]func(string) string{
		"base64":   func(s string) string { return std(b(s)) },
		"unpadded": func(s string) string { return raw(b(s + strings.Repeat(" ", 2-len(s)%3))) },
		"URL-safe": func(s string) string { return url(b(s + "??>>~~")) },
		"wrapped":  func(s string) string { return wrap(std(b(s)), 76, "\n") + "\n" },
		"indented": func(s string) string {
			return "gcp:\n  keyfile: |\n    " + wrap(std(b(s)), 64, "\n    ") +
				"\n"
		},
		"data URL":     func(s string) string { return "data:application/json;base64," + std(b(s)) },
		"in a line":    func(s string) string { return "loaded account " + std(b(s)) + " ok" },
		"assigned":     func(s string) string { return "ACCOUNT=" + std(b(s)) + "\nOTHER=x\n" },
		"one letter":   func(s string) string { return "/" + raw(b(s)) },
		"two letters":  func(s string) string { return "a/" + raw(b(s)) },
		"three":        func(s string) string { return "ab/" + raw(b(s)) },
		"gzip":         func(s string) string { return std(b(gzipped(t, s))) },
		"gzip in path": func(s string) string { return "a/" + std(b(gzipped(t, s))) },
		"zip":          func(s string) string { return std(b(zipped(t, s))) },
		"zlib": func(s string) string {
			return url(b(squeezed(t, s, func(to io.Writer) io.WriteCloser { return zlib.NewWriter(to) })))
		},
		"deflate": func(s string) string {
			return std(b(deflated(t, s)))
		},
		"JSON \\u": func(s string) string {
			var out strings.Builder
			for _, c := range []byte(s) {
				fmt.Fprintf(&out, `\u%04x`, c)
			}
			return `{"cfg":"` + out.String() + `"}`
		},
		"URL":        url2.PathEscape,
		"query":      func(s string) string { return "https://host/p?a=b&cfg=" + url2.QueryEscape(s) },
		"XML":        html.EscapeString,
		"PowerShell": func(s string) string { return std(b(wide(s))) },
		"UTF-16 BOM": func(s string) string { return "x " + raw(b("\xff\xfe"+wide(s))) },
		"UTF-16 big": func(s string) string { return std(b("\x00" + strings.TrimSuffix(wide(s), "\x00"))) },
		"hex":        func(s string) string { return "0x" + hex.EncodeToString(b(s)) },
		"HEX":        func(s string) string { return strings.ToUpper(hex.EncodeToString(b(s))) },
		"odd hex":    func(s string) string { return "id=a" + hex.EncodeToString(b(s)) },
		"hex lines":  func(s string) string { return wrap(hex.EncodeToString(b(s)), 60, "\n") },
		"hex gzip":   func(s string) string { return hex.EncodeToString(b(gzipped(t, s))) },
		"literals":   func(s string) string { return `x: "` + wrap(std(b(s)), 40, `\n"`+"\n  \"") + "\"\n" },
		"quoted":     func(s string) string { return "> " + wrap(std(b(s)), 40, "\n> ") + "\n" },
		"comment":    func(s string) string { return "# " + wrap(raw(b(s)), 40, "\n# ") + "\n" },
		"code":       func(s string) string { return `x = "` + wrap(std(b(s)), 40, "\" +\n\t\"") + `"` },
		"binary":     func(s string) string { return std(b("\x00\x01\xff\xf3" + s + "\x00\x1f\x8b\x08\xfe" + "\x00")) },
		"JSON":       func(s string) string { return text(t, map[string]any{"cfg": s}) },
		"JSON list":  func(s string) string { return text(t, []any{map[string]any{"name": "ACCOUNT", "value": s}}) },
	}
}

// wide returns a text in UTF-16.
func wide(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		out.Write([]byte{c, 0})
	}
	return out.String()
}

// TestPacked checks that a secret is hidden in each form and in each nesting of two forms, and that
// With leaves nothing of it.
func TestPacked(t *testing.T) {
	secrets := map[string]string{
		"name": `{"user": "me", "password": "` + packedSecret + `"}`,
		"shape": `{"type": "account", "pem": "-----BEGIN PRIVATE KEY-----\n` + packedSecret +
			`\n-----END PRIVATE KEY-----\n"}`,
		"yaml": "a: b\npassword: " + packedSecret + "\n",
	}
	all := forms(t)
	gone := func(redact.Part, any) any { return "gone" }
	for kind, secret := range secrets {
		for _, outer := range slices.Sorted(maps.Keys(all)) {
			for _, inner := range slices.Sorted(maps.Keys(all)) {
				value := all[outer](all[inner](secret))
				name := kind + " as " + inner + " in " + outer
				for _, obj := range []map[string]any{
					configMap("x", value),
					{"spec": map[string]any{"env": []any{map[string]any{"name": "CFG", "value": value}}}},
					{"metadata": map[string]any{"annotations": map[string]any{
						"objectset.rio.cattle.io/applied": value}}},
					{"apiVersion": "v1", "kind": "ConfigMap",
						"binaryData": map[string]any{"x.gz": base64.StdEncoding.EncodeToString([]byte(value))}},
				} {
					require.True(t, redact.NewShared().Object([]byte(corpusKey), obj), name)
					require.False(t, redact.NewShared().Object([]byte(corpusKey), obj), "a second pass: %s", name)
				}
				obj := configMap("x", value)
				require.True(t, redact.With([]byte(corpusKey), obj, gone), name)
				require.NotContains(t, secrettest.Unpack(text(t, obj), 4), "MARK", name)
			}
		}
	}
}

// TestPackedShown checks that packed text without a secret is shown.
func TestPackedShown(t *testing.T) {
	plain :=
		`{"user": "me", "replicas": 3, "image": "registry.example.com/shop/web:v1.2.3", "args": ["--listen=:8080"]}`
	for outer, pack := range forms(t) {
		for inner, packInner := range forms(t) {
			if inner == "zip" && outer == "URL" { // "+" inside may mean a space
				continue
			}
			obj := configMap("x", pack(packInner(plain)))
			require.False(t, redact.NewShared().Object([]byte(corpusKey), obj), "%s in %s", inner, outer)
		}
	}
}

// TestPackedKeepsForm checks that a text keeps its form around a replaced secret.
func TestPackedKeepsForm(t *testing.T) {
	replace := func(redact.Part, any) any { return "gone" }
	for _, form := range []string{
		"base64", "wrapped", "data URL", "JSON", "URL", "XML", "PowerShell", "UTF-16 big", "HEX", "hex lines",
	} {
		pack := forms(t)[form]
		obj := configMap("x", pack(`{"user": "me", "password": "`+packedSecret+`"}  `))
		require.True(t, redact.With([]byte(corpusKey), obj, replace))
		require.Equal(t, configMap("x", pack(`{"user": "me", "password": "gone"}  `)), obj, form)
	}
}

// TestPackedBounds checks that packed data that is too large or too deep counts as a secret,
// quickly.
func TestPackedBounds(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	bomb := gzipped(t, strings.Repeat("\x00", 64<<20))
	deep := `{"password": "` + packedSecret + `"}`
	for range 12 {
		deep = std(deep)
	}
	for name, value := range map[string]string{
		"damaged zip": std(zipped(t, strings.Repeat("hello world ", 100))[:60]), "bomb": std(bomb),
		"bomb in a bomb": std(gzipped(t, bomb)), "deep": deep,
		"many deflated": strings.Repeat(std(deflated(t, strings.Repeat("\x00", 4<<20)))+" ", 400) +
			std("password: "+packedSecret), "many": strings.Repeat(std(gzipped(t, strings.Repeat("a b ", 1<<20)))+" ",
			50),
	} {
		begun := time.Now()
		require.True(t, redact.NewShared().Object([]byte(corpusKey), configMap("x", value)), name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
	}
	for name, value := range map[string]string{
		"random": std(strings.Repeat("\x93\x01\xf2AbC", 200<<10)), "letters": strings.Repeat("A", 1<<20),
		"words":     strings.Repeat("kubernetes/io-", 1<<16),
		"truncated": std(gzipped(t, strings.Repeat("hello world ", 100))[:30]), "not gzip": std("\x1f\x8b\x08 hello"),
		"x^": "eJyhello0123456789",
	} {
		begun := time.Now()
		require.False(t, redact.NewShared().Object([]byte(corpusKey), configMap("x", value)), name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
	}
}
