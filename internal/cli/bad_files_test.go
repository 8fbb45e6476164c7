package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsNameTheFile: an error about a file names the file, as the first of several.
func TestErrorsNameTheFile(t *testing.T) {
	good, err := readFixture(testdata("calico", "before.db"))
	require.NoError(t, err)
	dir := t.TempDir()
	t.Chdir(dir)
	changed := func(change func(b []byte)) []byte {
		b := append([]byte(nil), good...)
		change(b)
		return b
	}
	write := func(name string, data []byte) { require.NoError(t, os.WriteFile(name, data, 0o600)) }
	write("good.db", good)
	bad := map[string][]byte{
		"empty.db": {}, "text.db": []byte(strings.Repeat("not a snapshot\n", 300)), "cut.db": good[:len(good)/2],
		"missing.db": nil,
		"digest.db":  changed(func(b []byte) { b[len(b)-1] ^= 0xff }),
		"metas.db":   changed(func(b []byte) { clear(b[:8192]) }),
		"pages.db": changed(func(b []byte) {
			for page := 3; page < len(b)/4096; page += 2 {
				for i := range 64 {
					b[page*4096+i] = 0xff
				}
			}
		}),
		"packed.gz": {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3},
	}
	for name, data := range bad {
		if data != nil {
			write(name, data)
		}
		for _, words := range []string{
			"status BAD", "get BAD cm -A", "get BAD cm -A --prefix /nope", "keys BAD", "keys BAD --raw /registry/nope",
			"sizes BAD", "doctor BAD --fail-on error",
			"history BAD ns/default", "history good.db BAD ns/default", "diff BAD good.db", "diff good.db BAD",
			"diff good.db BAD nope", "verify BAD",
			"migrate calico-v3 BAD out", "migrate storage-versions BAD out", "kcp list BAD", "kcp extract c1 BAD out",
			"kcp purge c1 BAD out",
			"kcp import BAD good.db out",
		} {
			status, stdout, stderr := runWords(strings.Fields(strings.ReplaceAll(words, "BAD", name))...)
			require.NotZero(t, status, "%s: %s", name, words)
			require.Contains(t, stderr, name, "%s", words)
			for line := range strings.Lines(stderr) {
				if strings.HasPrefix(line, "etcdshift: ") {
					require.Contains(t, line, name, "%s: %s", words, stdout)
					require.NotContains(t, line, "good.db: ", "%s", words)
				}
			}
		}
	}
}

// TestErrorsOfValuesNameTheFile: an error about the content of a sound file names the file too.
func TestErrorsOfValuesNameTheFile(t *testing.T) {
	dir := t.TempDir()
	recordedFile(t, dir, "storage/before.db", "one.db")
	recordedFile(t, dir, "storage/before.db", "two.db")
	t.Chdir(dir)
	for words, file := range map[string]string{
		"get one.db nope": "one.db", "get one.db ns/nope": "one.db", "get one.db ns --prefix /nope": "one.db",
		"keys one.db --raw /nope": "one.db",
		"history one.db /nope":    "one.db", "history one.db ns/nope": "one.db", "history one.db nope/nope": "one.db",
		"history one.db two.db ns/nope": "one.db, two.db",
		"diff one.db two.db nope":       "one.db, two.db", "diff one.db two.db ns/nope": "one.db, two.db",
		"diff one.db two.db --prefix /nope": "one.db, two.db",
		"sizes one.db --prefix /nope":       "one.db", "doctor one.db --prefix /nope": "one.db",
		"verify one.db --prefix /nope": "one.db", "status one.db --prefix /nope": "one.db",
		"migrate calico-v3 one.db out --prefix /nope":                "one.db",
		"migrate storage-versions one.db out --crd nope.example.com": "one.db",
		"kcp list one.db": "one.db", "kcp extract c1 one.db out": "one.db", "kcp purge c1 one.db out": "one.db",
		"kcp import one.db two.db out":    "one.db",
		"kcp verify one.db two.db two.db": "one.db",
	} {
		status, stdout, stderr := runWords(strings.Fields(words)...)
		require.NotZero(t, status, words)
		require.Contains(t, stderr+stdout, file+": ", "%s", words)
	}
}
