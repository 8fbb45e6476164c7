package redact

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of packed content. What goes beyond them counts as a secret.
const (
	mostUnpacked = 16 << 20 // bytes that are unpacked of one object
	mostFiles    = 1000     // in a zip archive
	shortestRun  = 16       // letters of base64
)

// Packed data begins with these. The two bytes of zlib are a checksum too.
const (
	gzipBegins = "\x1f\x8b\x08"
	zipBegins  = "PK\x03\x04"
	zlibBegins = 'x'
)

// room is what may still be unpacked of an object, in bytes.
type room struct{ left int }

// spend takes bytes; false when there are not so many left. Without a room each text has its own.
func (r *room) spend(n int) bool {
	if r == nil {
		return n <= mostUnpacked
	}
	r.left -= n
	return r.left >= 0
}

func (r *room) rest() int {
	if r == nil {
		return mostUnpacked
	}
	return max(r.left, 0)
}

// holdsPacked reports whether a text has a secret in what it packs: gzip, zlib, zip, and base64 of
// any form, wrapped, unpadded or within other words.
func (w walker) holdsPacked(text string) bool {
	inner := w.inner()
	holds := func(plain string) bool { return inner.texts > deepest || inner.holds(plain) }
	if isPacked(text) {
		return w.holdsUnpacked(text, holds)
	}
	var r run
	for r.next(text) {
		if len(r.bits) < shortestRun {
			continue
		}
		for offset := range 4 {
			data := r.decode(offset)
			if !w.room.spend(len(data)) || w.holdsData(data, offset, holds) {
				return true
			}
			if isOneText(data) {
				break
			}
		}
	}
	return false
}

// holdsData checks decoded bytes: what is packed in them, and each text between other bytes.
func (w walker) holdsData(data []byte, offset int, holds func(string) bool) bool {
	if at := packedAt(data); at >= 0 && (offset == 0 || at > 0 || data[0] != zlibBegins) {
		return w.holdsUnpacked(string(data[at:]), holds)
	}
	for begin, end := range segments(data) {
		if end-begin >= shortest && holds(string(data[begin:end])) {
			return true
		}
	}
	return false
}

// holdsUnpacked checks what is in packed data. Data that is too large counts as a secret.
func (w walker) holdsUnpacked(data string, holds func(string) bool) bool {
	files, whole := unpack(data, w.room.rest())
	if !whole {
		return true
	}
	for _, plain := range files {
		if !w.room.spend(len(plain)) || len(plain) >= shortest && holds(plain) {
			return true
		}
	}
	return false
}

// isPacked reports whether data begins as gzip, zip or zlib do.
func isPacked[T string | []byte](data T) bool {
	begin := string(data[:min(len(data), 4)])
	return strings.HasPrefix(begin, gzipBegins) || begin == zipBegins ||
		len(begin) == 4 && begin[0] == zlibBegins && begin[1]&0x20 == 0 && (int(begin[0])<<8|int(begin[1]))%31 == 0
}

// packedAt returns where packed data begins in other data, -1 for nowhere. Zlib is found at the
// beginning alone.
func packedAt(data []byte) int {
	if isPacked(data) {
		return 0
	}
	if at := bytes.Index(data, []byte(gzipBegins)); at >= 0 {
		return at
	}
	return bytes.Index(data, []byte(zipBegins))
}

// unpack returns the files in packed data, of damaged data what can be read; none of other data.
// It is false for more than most bytes, and for a damaged zip, whose files cannot be told.
func unpack(data string, most int) (files []string, whole bool) {
	if strings.HasPrefix(data, zipBegins) {
		return unzip(data, most)
	}
	var from io.Reader
	var err error
	if strings.HasPrefix(data, gzipBegins) {
		from, err = gzip.NewReader(strings.NewReader(data))
	} else {
		from, err = zlib.NewReader(strings.NewReader(data))
	}
	if err != nil {
		return nil, true
	}
	plain, _ := io.ReadAll(io.LimitReader(from, int64(most)+1))
	return []string{string(plain)}, len(plain) <= most
}

func unzip(data string, most int) (files []string, whole bool) {
	archive, err := zip.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, false
	}
	for _, file := range archive.File {
		from, err := file.Open()
		if err != nil {
			return nil, false
		}
		plain, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
		if most -= len(plain); err != nil || most < 0 || len(files) == mostFiles {
			return files, false
		}
		files = append(files, string(plain))
	}
	return files, true
}

// packAs packs a text as other data is packed: by gzip, zlib, or not at all.
func packAs(data []byte, plain string) ([]byte, error) {
	var out bytes.Buffer
	var to io.WriteCloser
	switch {
	case !isPacked(data):
		return []byte(plain), nil
	case bytes.HasPrefix(data, []byte(gzipBegins)):
		to = gzip.NewWriter(&out)
	default:
		to = zlib.NewWriter(&out)
	}
	_, err := io.WriteString(to, plain)
	err = errors.Join(err, to.Close())
	return out.Bytes(), err
}

// run is a run of letters of base64 in a text, in either alphabet and over several lines.
type run struct {
	begin, end int    // in the text, with padding
	bits       []byte // 6 bits a letter
	lines      int    // breaks in it
}

// next finds the next run of a text.
func (r *run) next(text string) bool {
	at := r.end
	for at < len(text) && sextets[text[at]] == noSextet {
		at++
	}
	r.begin, r.bits, r.lines = at, r.bits[:0], 0
	for at < len(text) {
		if bits := sextets[text[at]]; bits != noSextet {
			r.bits = append(r.bits, bits)
			at++
			continue
		}
		next := behindBreak(text, at)
		if next == at || next == len(text) || sextets[text[next]] == noSextet {
			break
		}
		r.lines++
		at = next
	}
	for pad := 0; pad < 2 && at < len(text) && text[at] == '='; pad++ {
		at++
	}
	r.end = at
	return len(r.bits) > 0
}

// behindBreak returns where the next line begins behind its indentation, for a line that ends at
// at. In JSON a line ends in "\n" with a backslash.
func behindBreak(text string, at int) int {
	rest := strings.TrimPrefix(strings.TrimPrefix(text[at:], `\r`), "\r")
	next := strings.TrimPrefix(strings.TrimPrefix(rest, `\n`), "\n")
	if len(next) == len(rest) {
		return at
	}
	return len(text) - len(strings.TrimLeft(next, " \t"))
}

// decode returns the bytes of a run from one of its letters on.
func (r *run) decode(offset int) []byte {
	bits := r.bits[min(offset, len(r.bits)):]
	out := make([]byte, 0, len(bits)*3/4)
	for ; len(bits) >= 4; bits = bits[4:] {
		out = append(out, bits[0]<<2|bits[1]>>4, bits[1]<<4|bits[2]>>2, bits[2]<<6|bits[3])
	}
	if len(bits) > 1 {
		out = append(out, bits[0]<<2|bits[1]>>4)
	}
	if len(bits) > 2 {
		out = append(out, bits[1]<<4|bits[2]>>2)
	}
	return out
}

const noSextet = 0xff

// sextets are the values of the letters of both alphabets of base64.
var sextets = func() (table [256]byte) {
	for c := range table {
		table[c] = noSextet
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		table[c] = byte(i)
	}
	table['-'], table['_'] = table['+'], table['/']
	return table
}()

// segments yields the texts in data, of one byte or more.
func segments(data []byte) func(yield func(begin, end int) bool) {
	return func(yield func(begin, end int) bool) {
		begin := 0
		for at := 0; at < len(data); {
			size := textSize(data[at:])
			if size == 0 {
				if at > begin && !yield(begin, at) {
					return
				}
				begin, size = at+1, 1
			}
			at += size
		}
		if begin < len(data) {
			yield(begin, len(data))
		}
	}
}

// textSize returns the length of the letter at the beginning of data, 0 if there is none.
func textSize(data []byte) int {
	switch c := data[0]; {
	case c >= 0x20 && c < 0x7f, c == '\t', c == '\n', c == '\r':
		return 1
	case c < utf8.RuneSelf:
		return 0
	}
	if r, size := utf8.DecodeRune(data); r != utf8.RuneError {
		return size
	}
	return 0
}

// isOneText reports whether data is text but for a few bytes at its ends.
func isOneText(data []byte) bool {
	const few = 3
	for begin, end := range segments(data) {
		return begin <= few && end >= len(data)-few
	}
	return false
}

// encode returns bytes as the letters of a run, with its alphabet, padding and lines.
func (r *run) encode(text string, data []byte) string {
	old := text[r.begin:r.end]
	encoding := base64.StdEncoding
	if strings.ContainsAny(old, "-_") {
		encoding = base64.URLEncoding
	}
	if len(r.bits)%4 != 0 && !strings.HasSuffix(old, "=") {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	out := encoding.EncodeToString(data)
	width := strings.IndexFunc(old, func(c rune) bool { return c == '\r' || c == '\n' || c == '\\' })
	if width <= 0 {
		return out
	}
	gap := old[width:behindBreak(old, width)]
	var wrapped strings.Builder
	for ; len(out) > width; out = out[width:] {
		wrapped.WriteString(out[:width] + gap)
	}
	return wrapped.String() + out
}
