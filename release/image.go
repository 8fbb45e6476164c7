package main

import (
	"context"
	"encoding/pem"
	"io/fs"
	"os"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the unprivileged user of the image, as in distroless images.
const nobody = "65532:65532"

// image writes an OCI image for all Linux platforms, as a layout in a tar for "podman load",
// "docker load", "ctr image import" and "skopeo copy oci-archive:". It contains only the program, a
// folder for temporary files and the certificate authorities for object storage.
func (r *release) image(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		img, err := r.imageOf(p)
		if err != nil {
			return err
		}
		on := v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: on})
	}
	// A named index with the image of each platform.
	name := v1.Descriptor{Annotations: map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "etcdshift:" + r.version,
	}}
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: index, Descriptor: name})
	if _, err := layout.Write(r.staged("image"), named); err != nil {
		return err
	}
	files := fstest.MapFS{}
	if err := r.addFolder(files, "", r.staged("image")); err != nil {
		return err
	}
	packed, err := packTar(files)
	if err != nil {
		return err
	}
	return r.write("etcdshift-"+r.version+"-image.tar", packed)
}

func (r *release) imageOf(p platform) (v1.Image, error) {
	layer, err := r.layer(p)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	old, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.date}, RootFS: old.RootFS,
		Config: v1.Config{
			User: nobody, Entrypoint: []string{"/usr/bin/etcdshift"}, WorkingDir: "/", Env: []string{"PATH=/usr/bin"},
			Labels: map[string]string{
				"org.opencontainers.image.version": r.version, "org.opencontainers.image.title": "etcdshift",
				"org.opencontainers.image.description": summary, "org.opencontainers.image.source": homepage,
				"org.opencontainers.image.licenses": licence,
			},
		},
	})
}

// layer returns the program, /tmp and certificate authorities, in the default file of Go, curl and
// other programs.
func (r *release) layer(p platform) (v1.Layer, error) {
	program, err := os.ReadFile(r.program(p))
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	r.add(files, "usr/bin/etcdshift", 0o755, program)
	r.add(files, "etc/ssl/certs/ca-certificates.crt", 0o644, certificates())
	r.add(files, "tmp", fs.ModeDir|fs.ModeSticky|0o777, nil)
	packed, err := packTar(files)
	if err != nil {
		return nil, err
	}
	path := r.staged("layer-" + p.String() + ".tar")
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
}

// certificates returns Mozilla's authorities, in the release from go.mod. It omits authorities
// trusted only for certificates up to a date: the file format has no such constraint.
func certificates() []byte {
	var out []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}
