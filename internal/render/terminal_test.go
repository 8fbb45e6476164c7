package render

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscaper(t *testing.T) {
	for given, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "\x1b[2J": `\x1b[2J`, "\u009b2J": `\u009b2J`, "äé\u00a0Â": "äé\u00a0Â",
		"\xc2\xc2\u009b": "\xc2\xc2" + `\u009b`, "\r\x7f": `\x0d\x7f`,
		"a\r\nb": "a\r\nb", "x\u202e\u2066\u200f\u2028": `x\u202e\u2066\u200f\u2028`, "\x9b2J": `\x9b2J`,
		"שלום": "שלום", "a\r": `a\x0d`, "\ufffe\uffff\ufffd": `\ufffe\uffff` + "\ufffd",
	} {
		var whole, parts bytes.Buffer
		w, p := NewEscaper(&whole), NewEscaper(&parts)
		n, err := w.Write([]byte(given))
		require.NoError(t, err)
		require.Equal(t, len(given), n)
		for _, b := range []byte(given) {
			_, err := p.Write([]byte{b})
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, p.Close())
		require.Equal(t, want, whole.String())
		require.Equal(t, want, parts.String())
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"/registry/pods/ns/p": "/registry/pods/ns/p",
		"Rôle":                "Rôle",
		"":                    "",
		"a\x1b[2Jb":           `"a\x1b[2Jb"`,
		"a\nb":                `"a\nb"`,
		"\xff":                `"\xff"`,
		"a\u202eb":            `"a\u202eb"`,
	} {
		require.Equal(t, want, Printable(in))
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1024 bytes (1.0 KiB)", 3547168: "3547168 bytes (3.4 MiB)",
		5 << 30: "5368709120 bytes (5.0 GiB)",
	} {
		require.Equal(t, want, Size(in))
	}
}

// TestFold checks that long lines are broken between words on a terminal, and that words stay
// whole.
func TestFold(t *testing.T) {
	for _, c := range [][2]string{
		{"short\n\n", "short\n\n"}, {"   -> aaaa bbbb\n", "   -> aaaa\n     bbbb\n"}, {"aaaa bbbb\n", "aaaa bbbb\n"},
		{"aaaaa bbbbb\n", "aaaaa\n  bbbbb\n"},
		{"/registry/pods  3\n", "/registry/pods\n  3\n"}, {"a   /registry/pods\n", "a\n  /registry/pods\n"},
		{"/registry/pods\n", "/registry/pods\n"},
		{"äöü äöü äöü äöü äöü\nx\n", "äöü äöü\n  äöü äöü\n  äöü\nx\n"}, {"          a\n", "          a\n"},
		{"no end", ""},
	} {
		var out bytes.Buffer
		f := &folder{w: &out, columns: 10}
		for _, b := range []byte(c[0]) {
			_, err := f.Write([]byte{b})
			require.NoError(t, err)
		}
		require.Equal(t, c[1], out.String(), c[0])
	}
	require.True(t, IsTerminal(&folder{}))
}

// TestFit checks that the progress line fits a terminal of any width.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"reading in.db", 13, "reading in.db"}, {"reading in.db", 12, "reading i..."}, {"reading in.db", 3, "..."},
		{"reading in.db", 2, ".."},
		{"reading in.db", -5, ""}, {"", 0, ""}, {"日本語.db", 9, "日本語.db"}, {"日本語.db", 8, "日本..."}, {"日本語.db", 6, "日..."},
		{"Rôle.db", 7, "Rôle.db"},
	} {
		require.Equal(t, c.want, fit(c.text, c.columns), "%s in %d", c.text, c.columns)
	}
}

// TestYAMLRefuses checks that characters that YAML refuses are escaped.
func TestYAMLRefuses(t *testing.T) {
	text, err := YAML(map[string]any{"a": "\ud7ff\ufffe\uffff"})
	require.NoError(t, err)
	require.Equal(t, "{\n    \"a\": \"\ud7ff\\ufffe\\uffff\"\n}\n", string(text))
}
