package redact

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"golang.org/x/text/encoding/unicode"
)

// Bounds of packed content. Larger content counts as a secret.
const (
	mostUnpacked = 16 << 20 // unpacked bytes of one object
	mostFiles    = 1000     // in a zip archive
)

// leastDeflated is the least length of deflate data with a name and a secret: shorter data is a
// word.
const leastDeflated = 18

// Packed data begins with these bytes. The first two bytes of zlib also include a checksum.
const (
	gzipBegins = "\x1f\x8b\x08"
	zipBegins  = "PK\x03\x04"
	zlibBegins = 'x'
)

// ErrPacked is returned for damaged packed data, or data too large when unpacked.
var ErrPacked = errors.New("packed data is damaged or too large to look into it")

// Unpacker finds texts inside escaped, encoded and packed texts, within the bounds of one object. A
// nil Unpacker bounds each text separately.
type Unpacker struct {
	left  int    // bytes that may still be unpacked
	spare []byte // memory for decoded data
}

// NewUnpacker returns an Unpacker for editing an object.
func NewUnpacker() *Unpacker { return &Unpacker{left: 4 * mostUnpacked} }

func (u *Unpacker) budget() int {
	if u == nil {
		return mostUnpacked
	}
	return u.left
}

// take lowers the budget.
func (u *Unpacker) take(bytes int) {
	if u != nil {
		u.left = max(u.left-bytes, 0)
	}
}

// encoded is a part of a text with an escaped, encoded or packed text inside.
type encoded struct {
	begin, end int
	plain      string
	edit       edit
	err        error // plain is incomplete
	brief      bool  // encoded in fewer than leastNamed letters
}

// edit returns an encoded part with other content. It returns false if the result would not decode
// like the original part. A nil edit marks an uneditable part.
type edit func(to func(plain string) string) (string, bool)

// spend yields an encoded part; content over the budget is replaced by ErrPacked.
func (u *Unpacker) spend(f encoded, yield func(encoded) bool) bool {
	if len(f.plain) > u.budget() {
		f.plain, f.err = "", ErrPacked
	}
	u.take(len(f.plain))
	return yield(f)
}

// decode yields the encoded parts of a text. Base64 and hexadecimal have at least least letters,
// and, if texts is true, a text or packed data in them.
func (u *Unpacker) decode(text string, least int, texts bool) iter.Seq[encoded] {
	return func(yield func(encoded) bool) {
		switch {
		case isText(text):
			_ = u.unescape(text, yield) && u.decodeRuns(text, least, texts, yield)
		case u.unpack(text, yield) && u.decodeUTF16(text, yield):
			for begin, end := range segments(text) {
				if !yield(encoded{begin: begin, end: end, plain: text[begin:end]}) {
					return
				}
			}
		}
	}
}

// Repack edits the content of a text encoded as a whole. It returns false if the content is
// unchanged or cannot be encoded in the form of the text.
func (u *Unpacker) Repack(text string, to func(plain string) string) (out string, is bool, err error) {
	for f := range u.decode(text, leastWhole, false) {
		switch {
		case strings.TrimSpace(text[:f.begin]+text[f.end:]) != "": // the remaining parts too
			return text, false, nil
		case f.err != nil:
			return text, false, f.err
		case f.edit == nil:
			continue
		}
		changed := false
		edited, is := f.edit(func(plain string) string {
			out := to(plain)
			changed = changed || out != plain
			return out
		})
		if changed && is {
			return text[:f.begin] + edited + text[f.end:], true, nil
		}
	}
	return text, false, nil
}

// reencode returns an edit with the encoding of encode.
func reencode(encoded, plain string, encode func(string) string) edit {
	return func(to func(string) string) (string, bool) {
		return encode(to(plain)), encode(plain) == encoded
	}
}

// isPacked reports whether data begins like gzip, zip or zlib.
func isPacked(data string) bool {
	return strings.HasPrefix(data, gzipBegins) || strings.HasPrefix(data, zipBegins) ||
		len(data) >= 4 && data[0] == zlibBegins && data[1]&0x20 == 0 && (int(data[0])<<8|int(data[1]))%31 == 0
}

// packedAt returns the offset of packed data in other data, -1 for none. Zlib is found only at the
// beginning.
func packedAt(data string) int {
	if isPacked(data) {
		return 0
	}
	if at := strings.Index(data, gzipBegins); at >= 0 {
		return at
	}
	return strings.Index(data, zipBegins)
}

// errDamaged is the error for damaged packed data with a readable beginning.
var errDamaged = fmt.Errorf("a part of it: %w", ErrPacked)

// unpack yields the files in gzip, zlib and zip data; for damaged gzip, the readable part. It
// returns false if data contains nothing else.
func (u *Unpacker) unpack(data string, yield func(encoded) bool) bool {
	at := packedAt(data)
	if at < 0 {
		return true
	}
	files, err := unpack(data[at:], u.budget())
	f := encoded{end: len(data)}
	switch {
	case err == nil:
		f.edit = func(to func(string) string) (string, bool) {
			out, err := pack(data[at:], files, to)
			return data[:at] + out, err == nil
		}
	case err == ErrPacked, at == 0 && data[0] != zlibBegins: // otherwise data is not packed
		f.err = err
	}
	if len(files) == 0 && f.err != nil && !yield(f) {
		return false
	}
	for _, f.plain = range files {
		if !u.spend(f, yield) {
			return false
		}
	}
	return at > 0 || len(files) == 0
}

// inflaters has readers of deflate data: a new one takes longer than most data.
var inflaters = sync.OnceValue(func() *sync.Pool {
	return &sync.Pool{New: func() any { return flate.NewReader(nil) }}
})

// inflate decompresses text in deflate data without a header; it returns "" for other data.
func (u *Unpacker) inflate(data []byte) string {
	if len(data) < leastDeflated {
		return ""
	}
	stored := data[1]^data[3] == 0xff && data[2]^data[4] == 0xff // a length and its complement
	if block := data[0] >> 1 & 3; block == 3 || block == 0 && !stored {
		return ""
	}
	from := inflaters().Get().(io.Reader)
	defer inflaters().Put(from)
	_ = from.(flate.Resetter).Reset(bytes.NewReader(data), nil)
	plain, err := io.ReadAll(io.LimitReader(from, int64(u.budget())+1))
	if err == nil && isText(string(plain)) {
		return string(plain)
	}
	u.take(len(plain))
	return ""
}

func unpack(data string, most int) (files []string, err error) {
	var from io.Reader
	switch {
	case strings.HasPrefix(data, zipBegins):
		return unzip(data, most)
	case strings.HasPrefix(data, gzipBegins):
		from, err = gzip.NewReader(strings.NewReader(data))
	default:
		from, err = zlib.NewReader(strings.NewReader(data))
	}
	if err != nil {
		return nil, errDamaged
	}
	plain, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	switch {
	case len(plain) > most:
		return nil, ErrPacked
	case err != nil:
		err = errDamaged
	}
	return []string{string(plain)}, err
}

func unzip(data string, most int) (files []string, err error) {
	archive, err := zip.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil || len(archive.File) > mostFiles {
		return nil, ErrPacked
	}
	for _, file := range archive.File {
		from, err := file.Open()
		if err != nil {
			return files, ErrPacked
		}
		plain, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
		if most -= len(plain); err != nil || most < 0 {
			return files, ErrPacked
		}
		files = append(files, string(plain))
	}
	return files, nil
}

// residue is the modulus for comparing lengths of packed data. Data with equal lengths modulo
// residue has equal padding in base64 and in base64 of base64.
const residue = 27

// pack packs edited files in the format of data. The length modulo residue stays.
func pack(data string, files []string, to func(string) string) (string, error) {
	edited := make([]string, len(files))
	for i, plain := range files {
		edited[i] = to(plain)
	}
	out, err := packed(data, edited, 0)
	if fill := ((len(data)-len(out))%residue + residue) % residue; err == nil && fill > 0 {
		out, err = packed(data, edited, fill)
	}
	return out, err
}

// packed packs files, and adds padding for fill bytes.
func packed(data string, files []string, fill int) (string, error) {
	var out bytes.Buffer
	switch {
	case strings.HasPrefix(data, zipBegins):
		return zipped(data, files, fill)
	case strings.HasPrefix(data, gzipBegins):
		to, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if fill > 0 { // its end is a byte too
			to.Comment = strings.Repeat("x", (fill+residue-2)%residue+1)
		}
		_, err := io.WriteString(to, files[0])
		err = errors.Join(err, to.Close())
		return out.String(), err
	}
	to := zlib.NewWriter(&out)
	_, err := io.WriteString(to, files[0])
	for range 1 + fill*11%residue { // each flush after the first writes 5 bytes
		err = errors.Join(err, to.Flush())
	}
	err = errors.Join(err, to.Close())
	return out.String(), err
}

func zipped(data string, files []string, fill int) (string, error) {
	archive, err := zip.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, file := range archive.File {
		header := zip.FileHeader{Name: file.Name, Method: file.Method, Modified: file.Modified,
			ExternalAttrs: file.ExternalAttrs}
		to, err := w.CreateHeader(&header)
		if err == nil {
			_, err = io.WriteString(to, files[i])
		}
		if err != nil {
			return "", err
		}
	}
	err = errors.Join(w.SetComment(strings.Repeat("x", fill)), w.Close())
	return out.String(), err
}

// decodeUTF16 yields text in UTF-16 of either byte order. A quarter to three quarters of it are
// zeros.
func (u *Unpacker) decodeUTF16(data string, yield func(encoded) bool) bool {
	zeros := strings.Count(data, "\x00")
	if len(data) < 2*shortest || zeros*4 < len(data) || zeros*4 > len(data)*3 {
		return true
	}
	endianness := unicode.LittleEndian // most zeros are high bytes
	if strings.IndexByte(data, 0)%2 == 0 {
		endianness = unicode.BigEndian
	}
	encoding := unicode.UTF16(endianness, unicode.IgnoreBOM)
	wide := func(plain string) string {
		out, _ := encoding.NewEncoder().String(plain)
		return out
	}
	plain, _ := encoding.NewDecoder().String(data[:len(data)&^1])
	f := encoded{end: len(data), plain: plain, edit: reencode(data, plain, wide)}
	if wide(plain) != data { // only a part is UTF-16; letters beyond Latin-1 are lost
		letters := []rune{}
		for _, c := range []byte(data) {
			if c != 0 {
				letters = append(letters, rune(c))
			}
		}
		f.edit, f.plain = nil, string(letters)
	}
	return u.spend(f, yield)
}
