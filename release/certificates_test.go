package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCertificates: the layer of the image has the file, the same bytes each time, with authorities
// that Go takes.
func TestCertificates(t *testing.T) {
	r := &release{out: t.TempDir(), date: time.Unix(1e9, 0)}
	p := platform{os: "linux", arch: "amd64"}
	err := os.MkdirAll(filepath.Dir(r.program(p)), 0o755)
	if err == nil {
		err = os.WriteFile(r.program(p), []byte("program"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	var layers [2]bytes.Buffer
	for i := range layers {
		if err := r.writeLayer(&layers[i], p); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(layers[0].Bytes(), layers[1].Bytes()) {
		t.Error("two layers differ")
	}
	files := map[string][]byte{}
	for in := tar.NewReader(&layers[0]); ; {
		head, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name], _ = io.ReadAll(in)
	}
	n := 0
	for rest := files["etc/ssl/certs/ca-certificates.crt"]; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if n < 50 || string(files["usr/bin/etcdshift"]) != "program" {
		t.Errorf("%d authorities, %q", n, files["usr/bin/etcdshift"])
	}
}
