package main

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// useImage checks the image in dist, and runs its program as the image's user, with only the
// image's files.
func useImage(t *testing.T, dist string) {
	dir, root := t.TempDir(), t.TempDir()
	do(t, dir, "tar", "-xf", filepath.Join(dist, "etcdshift-v0.9.8-image.tar"))
	index := must(layout.ImageIndexFromPath(dir))
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	platforms := must(index.ImageIndex(first(index)))
	image := must(platforms.Image(first(platforms)))
	config := must(image.ConfigFile()).Config
	if config.User != nobody || config.Entrypoint[0] != "/usr/bin/etcdshift" {
		t.Errorf("%+v", config)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to be another user")
	}
	var files bytes.Buffer
	must(files.ReadFrom(mutate.Extract(image)))
	packed := filepath.Join(dir, "files.tar")
	write(t, packed, files.Bytes())
	do(t, dir, "tar", "-xf", packed, "-C", root)
	trusted := must(os.ReadFile(filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt")))
	if n := bytes.Count(trusted, []byte("BEGIN CERTIFICATE")); n < 50 ||
		!x509.NewCertPool().AppendCertsFromPEM(trusted) {
		t.Errorf("the image has %d certificate authorities", n)
	}
	for _, dir := range []string{filepath.Dir(root), root} {
		must(0, os.Chmod(dir, 0o755))
	}
	in := filepath.Join(root, "before.db.gz")
	write(t, in, must(os.ReadFile("../testdata/calico/before.db.gz")))
	must(0, os.Chmod(in, 0o644))
	do(t, dir, "unshare", "--net", "chroot", "--userspec="+nobody, root, config.Entrypoint[0], "status",
		"/before.db.gz")
}

// first returns the digest of the first entry of an index.
func first(index v1.ImageIndex) v1.Hash { return must(index.IndexManifest()).Manifests[0].Digest }
