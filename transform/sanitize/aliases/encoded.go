package aliases

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// leastEncoded is the length from which a text may be encoded: a name and its encoding are longer.
const leastEncoded = 12

// encoded edits a text that is encoded as a whole, and perhaps compressed. It is false where no
// name is in it.
func (e *Editor) encoded(s string) (string, bool) {
	if len(s) < leastEncoded || strings.ContainsAny(s[:leastEncoded], " .:,{}\"") {
		return "", false
	}
	text, wrap := unwrapped(s)
	for _, c := range codings(text) {
		plain, err := c.decode(text)
		if err != nil {
			continue
		}
		before := e.Replaced
		var out []byte
		if bytes.HasPrefix(plain, []byte(gzipBegins)) {
			out = e.packed(plain)
		} else {
			out = []byte(e.text(string(plain)))
		}
		if e.Replaced > before {
			return wrap(c.encode(out)), true
		}
	}
	return "", false
}

// coding is a way to write bytes as text.
type coding struct {
	decode func(string) ([]byte, error)
	encode func([]byte) string
}

// codings are the ways in which a text may be written.
func codings(text string) (out []coding) {
	if strings.Trim(text, "0123456789abcdefABCDEF") == "" {
		to := hex.EncodeToString
		if strings.ContainsAny(text, "ABCDEF") {
			to = func(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) }
		}
		out = append(out, coding{hex.DecodeString, to})
	}
	// Without "=" at its end a text whose length is a multiple of four may be padded or not. What
	// is packed in it gets another length, and a reader of padded base64 takes no other.
	of, padded := base64.StdEncoding, strings.HasSuffix(text, "=") || len(text)%4 == 0
	if strings.ContainsAny(text, "-_") { // as tokens have it, which are not padded
		of, padded = base64.URLEncoding, strings.HasSuffix(text, "=")
	}
	if !padded {
		of = of.WithPadding(base64.NoPadding)
	}
	return append(out, coding{of.DecodeString, of.EncodeToString})
}

// unwrapped returns a text without line breaks, and what puts them back.
func unwrapped(s string) (text string, wrap func(string) string) {
	width := strings.IndexAny(s, "\r\n")
	if width <= 0 {
		return s, func(out string) string { return out }
	}
	line := "\n"
	if s[width] == '\r' {
		line = "\r\n"
	}
	text = strings.NewReplacer("\r", "", "\n", "").Replace(s)
	end := s[len(strings.TrimRight(s, "\r\n")):]
	return text, func(out string) string {
		var lines []string
		for ; len(out) > width; out = out[width:] {
			lines = append(lines, out[:width])
		}
		return strings.Join(append(lines, out), line) + end
	}
}

// wide edits a text in UTF-16, of either byte order. It is false for another text, and for one
// without a name.
func (e *Editor) wide(s string) (string, bool) {
	if len(s) < leastEncoded || len(s)%2 != 0 || strings.IndexByte(s[:leastEncoded], 0) < 0 {
		return "", false
	}
	for low := range 2 {
		narrow := make([]byte, len(s)/2)
		for i := range narrow {
			if s[2*i+1-low] == 0 && s[2*i+low] < 0x80 {
				narrow[i] = s[2*i+low]
			}
		}
		out := e.Text(e.places(string(narrow)), e.leave)
		if out == string(narrow) || len(out) != len(narrow) { // aliases have the length of their names
			continue
		}
		edited := []byte(s)
		for i := range narrow {
			if narrow[i] != 0 {
				edited[2*i+low] = out[i]
			}
		}
		return string(edited), true
	}
	return "", false
}
