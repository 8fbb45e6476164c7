package aliases

import (
	"bytes"
	"compress/gzip"
	"io"
)

// maxPacked bounds what is unpacked, in bytes: a value has 1.5 MiB, and text shrinks tenfold.
const maxPacked = 16 << 20

// gzipBegins is what packed data begins with, the method of compression with it.
const gzipBegins = "\x1f\x8b\x08"

// Repack edits what gzip packed. It is false for other data, and for more than a value can hold.
func Repack(data []byte, edit func(plain []byte) []byte) ([]byte, bool) {
	if !bytes.HasPrefix(data, []byte(gzipBegins)) {
		return nil, false
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(unzip, maxPacked+1))
	if err != nil || len(plain) > maxPacked {
		return nil, false
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, false
	}
	if _, err := zip.Write(edit(plain)); err != nil || zip.Close() != nil {
		return nil, false
	}
	return packed.Bytes(), true
}
