package secrettest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"html"
	"io"
	"net/url"
	"regexp"
	"strings"
)

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{11,}`)
	hexRun    = regexp.MustCompile(`[0-9A-Fa-f]{16,}`)
	lineBreak = regexp.MustCompile(`(?:\\[nr]|[\s"'>#\\])+`)
	escape    = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2}|[^%])+`)
)

// Unpack returns data and all contents encoded in base64, hexadecimal, UTF-16, escapes, gzip, zlib
// and zip, up to a number of levels.
func Unpack(data string, levels int) string {
	if levels == 0 {
		return data
	}
	all := data
	add := func(inner string) {
		if inner != data && inner != "" {
			all += "\n" + Unpack(inner, levels-1)
		}
	}
	for _, file := range files(data) {
		add(file)
	}
	if strings.Count(data, "\x00")*4 > len(data) {
		add(strings.ReplaceAll(data, "\x00", ""))
	}
	flat := lineBreak.ReplaceAllString(data, "")
	for _, run := range base64Run.FindAllString(data+"\n"+flat, -1) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for skip := range 4 {
			rest := run[skip:]
			if len(rest)%4 == 1 {
				rest = rest[:len(rest)-1]
			}
			plain, _ := base64.RawStdEncoding.DecodeString(rest)
			if tells(string(plain)) {
				add(string(plain))
			}
		}
	}
	for _, run := range hexRun.FindAllString(data+"\n"+flat, -1) {
		for skip := range 2 {
			if plain, _ := hex.DecodeString(run[skip:]); tells(string(plain)) {
				add(string(plain))
			}
		}
	}
	for _, part := range escape.FindAllString(data, -1) {
		if plain, err := url.QueryUnescape(part); err == nil && strings.Contains(part, "%") {
			add(plain)
		}
	}
	if strings.Contains(data, "&#") || strings.Contains(data, "&quot;") {
		add(html.UnescapeString(data))
	}
	return all
}

// tells reports whether decoded bytes are more than noise: packed, or with a few words.
func tells(plain string) bool {
	if files(plain) != nil {
		return true
	}
	letters := 0
	for _, c := range []byte(strings.ReplaceAll(plain, "\x00", "")) {
		if letters++; c < ' ' && c != '\n' && c != '\t' && c != '\r' || c > '~' {
			letters = 0
		}
		if letters >= 8 {
			return true
		}
	}
	return false
}

// files returns the unpacked contents of data.
func files(data string) (out []string) {
	if at := strings.Index(data, "\x1f\x8b\x08"); at >= 0 {
		if from, err := gzip.NewReader(strings.NewReader(data[at:])); err == nil {
			plain, _ := io.ReadAll(from)
			out = append(out, string(plain))
		}
	}
	if from, err := zlib.NewReader(strings.NewReader(data)); err == nil {
		plain, _ := io.ReadAll(from)
		out = append(out, string(plain))
	}
	at := strings.Index(data, "PK\x03\x04")
	if at < 0 {
		return out
	}
	archive, err := zip.NewReader(bytes.NewReader([]byte(data[at:])), int64(len(data)-at))
	if err != nil {
		return out
	}
	for _, file := range archive.File {
		if from, err := file.Open(); err == nil {
			plain, _ := io.ReadAll(from)
			out = append(out, string(plain))
		}
	}
	return out
}
