package main

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user of the image: no root, as distroless images name it.
const nobody = "65532:65532"

// image makes an OCI image for all Linux platforms, as a layout in a tar that "podman load",
// "docker load", "ctr image import" and "skopeo copy oci-archive:" read. It has the program, a
// folder for temporary files and the certificate authorities for object storage, nothing else.
func (r *release) image(context.Context) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
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
	// One index under a name, in which each platform finds its own.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "etcdshift:" + r.version,
		}},
	})
	if _, err := layout.Write(r.staged("image"), named); err != nil {
		return err
	}
	files, err := filesUnder(r.staged("image"), "")
	if err != nil {
		return err
	}
	return create(filepath.Join(r.out, "etcdshift-"+r.version+"-image.tar"), func(w io.Writer) error { return writeTar(w, r.date, files) })
}

func (r *release) imageOf(p platform) (v1.Image, error) {
	layer, err := r.layer(p)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.date}, RootFS: rootOf(img),
		Config: v1.Config{
			User: nobody, Entrypoint: []string{"/usr/bin/etcdshift"}, WorkingDir: "/", Env: []string{"PATH=/usr/bin"},
			Labels: map[string]string{
				"org.opencontainers.image.version": r.version, "org.opencontainers.image.title": "etcdshift",
				"org.opencontainers.image.description": summary, "org.opencontainers.image.source": homepage, "org.opencontainers.image.licenses": licence,
			},
		},
	})
}

func rootOf(img v1.Image) v1.RootFS {
	config, err := img.ConfigFile()
	if err != nil {
		return v1.RootFS{Type: "layers"}
	}
	return config.RootFS
}

// layer has the program, /tmp and certificate authorities.
func (r *release) layer(p platform) (v1.Layer, error) {
	path := r.staged("layer-" + p.String() + ".tar")
	if err := create(path, func(w io.Writer) error { return r.writeLayer(w, p) }); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
}

func (r *release) writeLayer(w io.Writer, p platform) error {
	info, err := os.Stat(r.program(p))
	if err != nil {
		return err
	}
	t, authorities := tar.NewWriter(w), certificates()
	for _, head := range []*tar.Header{
		{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "etc/ssl/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "etc/ssl/certs/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "etc/ssl/certs/ca-certificates.crt", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(authorities))},
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/etcdshift", Typeflag: tar.TypeReg, Mode: 0o755, Size: info.Size()},
	} {
		head.ModTime, head.Format = r.date, tar.FormatPAX
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if head.Typeflag == tar.TypeReg && head.Mode == 0o644 {
			if _, err := t.Write(authorities); err != nil {
				return err
			}
		}
	}
	if err := copyFile(t, r.program(p)); err != nil {
		return err
	}
	return t.Close()
}
