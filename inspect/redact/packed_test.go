package redact_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect/redact"
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

// wrap breaks a text into lines, as base64 and PEM do.
func wrap(text string, width int, gap string) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), gap)
}

// forms are ways to keep a text in another one.
func forms(t testing.TB) map[string]func(string) string {
	std, raw, url := base64.StdEncoding.EncodeToString, base64.RawStdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	b := func(s string) []byte { return []byte(s) }
	return map[string]func(string) string{
		"base64":       func(s string) string { return std(b(s)) },
		"unpadded":     func(s string) string { return raw(b(s + strings.Repeat(" ", 2-len(s)%3))) },
		"URL-safe":     func(s string) string { return url(b(s + "??>>~~")) },
		"wrapped":      func(s string) string { return wrap(std(b(s)), 76, "\n") + "\n" },
		"indented":     func(s string) string { return "gcp:\n  keyfile: |\n    " + wrap(std(b(s)), 64, "\n    ") + "\n" },
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
		"JSON":      func(s string) string { return text(t, map[string]any{"cfg": s}) },
		"JSON list": func(s string) string { return text(t, []any{map[string]any{"name": "ACCOUNT", "value": s}}) },
	}
}

// unpackedAll is a text and all that is packed in it, found by other means than the package's own.
func unpackedAll(data string, levels int) string {
	all := data
	if levels == 0 {
		return all
	}
	flat := regexp.MustCompile(`(?:\\n|\s)+`).ReplaceAllString(strings.ReplaceAll(data, `\"`, `"`), "")
	for _, run := range regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}`).FindAllString(data+"\n "+flat, -1) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for skip := range 4 {
			rest := run[skip:]
			if len(rest)%4 == 1 {
				rest = rest[:len(rest)-1]
			}
			plain, _ := base64.RawStdEncoding.DecodeString(rest)
			if strings.Contains(string(plain), "MARK") || levels > 1 && bytes.Count(plain, []byte{0}) == 0 && strings.Trim(string(plain[:min(8, len(plain))]), "\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz{|}") == "" {
				all += unpackedAll(string(plain), levels-1)
			}
			if unzip, err := gzip.NewReader(bytes.NewReader(plain)); err == nil {
				text, _ := io.ReadAll(unzip)
				all += unpackedAll(string(text), levels-1)
			}
		}
	}
	return all
}

// A secret is hidden in each form, and in each form of a form. With leaves nothing of it.
func TestPacked(t *testing.T) {
	secrets := map[string]string{
		"name":  `{"user": "me", "password": "` + packedSecret + `"}`,
		"shape": `{"type": "account", "pem": "-----BEGIN PRIVATE KEY-----\n` + packedSecret + `\n-----END PRIVATE KEY-----\n"}`,
		"yaml":  "a: b\npassword: " + packedSecret + "\n",
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
					{"metadata": map[string]any{"annotations": map[string]any{"objectset.rio.cattle.io/applied": value}}},
					{"apiVersion": "v1", "kind": "ConfigMap", "binaryData": map[string]any{"x.gz": base64.StdEncoding.EncodeToString([]byte(value))}},
				} {
					require.True(t, redact.Object([]byte(corpusKey), obj), name)
					require.False(t, redact.Object([]byte(corpusKey), obj), "a second pass: %s", name)
				}
				obj := configMap("x", value)
				require.True(t, redact.With([]byte(corpusKey), obj, gone), name)
				require.NotContains(t, unpackedAll(text(t, obj), 4), "MARK", name)
			}
		}
	}
}

// What is packed and holds no secret is shown.
func TestPackedShown(t *testing.T) {
	plain := `{"user": "me", "replicas": 3, "image": "registry.example.com/shop/web:v1.2.3", "args": ["--listen=:8080"]}`
	for outer, pack := range forms(t) {
		for inner, packInner := range forms(t) {
			obj := configMap("x", pack(packInner(plain)))
			require.False(t, redact.Object([]byte(corpusKey), obj), "%s in %s", inner, outer)
		}
	}
}

// A text keeps its form around a replaced secret.
func TestPackedKeepsForm(t *testing.T) {
	replace := func(redact.Part, any) any { return "gone" }
	for _, form := range []string{"base64", "wrapped", "data URL", "JSON"} {
		pack := forms(t)[form]
		obj := configMap("x", pack(`{"user": "me", "password": "`+packedSecret+`"}  `))
		require.True(t, redact.With([]byte(corpusKey), obj, replace))
		require.Equal(t, configMap("x", pack(`{"user": "me", "password": "gone"}  `)), obj, form)
	}
}

// Packed data that is too large, or packed too often, counts as a secret, in little time.
func TestPackedBounds(t *testing.T) {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	bomb := gzipped(t, strings.Repeat("\x00", 64<<20))
	deep := `{"password": "` + packedSecret + `"}`
	for range 12 {
		deep = std(deep)
	}
	for name, value := range map[string]string{
		"damaged zip": std(zipped(t, strings.Repeat("hello world ", 100))[:60]), "bomb": std(bomb), "bomb in a bomb": std(gzipped(t, bomb)), "deep": deep, "many": strings.Repeat(std(gzipped(t, strings.Repeat("a b ", 1<<20)))+" ", 50),
	} {
		begun := time.Now()
		require.True(t, redact.Object([]byte(corpusKey), configMap("x", value)), name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
	}
	for name, value := range map[string]string{
		"random": std(strings.Repeat("\x93\x01\xf2AbC", 200<<10)), "letters": strings.Repeat("A", 1<<20), "words": strings.Repeat("kubernetes/io-", 1<<16),
		"truncated": std(gzipped(t, strings.Repeat("hello world ", 100))[:30]), "not gzip": std("\x1f\x8b\x08 hello"), "x^": "eJyhello0123456789",
	} {
		begun := time.Now()
		require.False(t, redact.Object([]byte(corpusKey), configMap("x", value)), name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
	}
}
