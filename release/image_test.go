package main

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// useImage checks the image that is packed in dist, and runs its program as its user, in its files
// alone.
func useImage(t *testing.T, dist string) {
	dir := t.TempDir()
	do(t, dir, "tar", "-xf", filepath.Join(dist, "etcdshift-v0.9.8-image.tar"))
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	config := inner(t, index)
	if config.Config.User != nobody || config.Config.Entrypoint[0] != "/usr/bin/etcdshift" {
		t.Errorf("%+v", config.Config)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to be another user")
	}
	root := t.TempDir()
	layers, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range layers {
		if text, err := os.ReadFile(blob); err == nil && !json.Valid(text) {
			do(t, dir, "tar", "-xzf", blob, "-C", root)
		}
	}
	trusted, err := os.ReadFile(filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(trusted) {
		t.Errorf("the image trusts no certificate authority: %v", err)
	}
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.ReadFile(filepath.Join("..", "testdata", "calico", "before.db.gz"))
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "before.db.gz"), packed, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(t, dir, "unshare", "--net", "chroot", "--userspec="+nobody, root, config.Config.Entrypoint[0], "status", "/before.db.gz")
}

// inner is the configuration of the first image of an index in an index.
func inner(t *testing.T, index v1.ImageIndex) *v1.ConfigFile {
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = platforms.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	image, err := platforms.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
