package cli

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

// packCmd implements "pack gzip|zstd|zip|zip2 FILE OUT": OUT is FILE compressed, beside another
// file in zip2; "pack bomb FILE OUT" appends zeros to the contents. OUT must have the same bytes,
// size, mode and times at the end of the script.
func packCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pack gzip|zstd|zip|zip2|bomb FILE OUT")
	}
	content := []byte(ts.ReadFile(args[1]))
	var out bytes.Buffer
	w := packer(ts, args[0], &out)
	_, err := w.Write(content)
	ts.Check(err)
	if args[0] == "bomb" {
		for range 300 {
			_, err := w.Write(make([]byte, 1<<20))
			ts.Check(err)
		}
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out.Bytes(), 0o440))
	unchanging(ts, args[2])
}

func packer(ts *testscript.TestScript, format string, out io.Writer) io.WriteCloser {
	switch format {
	case "gzip":
		return gzip.NewWriter(out)
	case "zip", "zip2":
		z := zip.NewWriter(out)
		if format == "zip2" {
			_, err := z.Create("another")
			ts.Check(err)
		}
		f, err := z.Create("on-demand-server-1-1700000000")
		ts.Check(err)
		return struct {
			io.Writer
			io.Closer
		}{f, z}
	}
	z, err := zstd.NewWriter(out)
	ts.Check(err)
	return z
}
