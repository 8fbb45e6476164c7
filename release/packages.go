package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	summary   = "read, change and prove etcd snapshots of Kubernetes clusters"
	homepage  = "https://github.com/etcdshift/etcdshift"
	licence   = "Apache-2.0"
	documents = "usr/share/doc/etcdshift"
)

// packages writes a deb and an rpm for each Linux platform.
func (r *release) packages(context.Context) error {
	for _, p := range r.platforms {
		for _, format := range []string{"deb", "rpm"} {
			if p.os != "linux" {
				continue
			}
			packed, err := r.pack(p, format)
			if err != nil {
				return err
			}
			if err := r.write(r.name(p)+"."+format, packed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) pack(p platform, format string) ([]byte, error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return nil, err
	}
	contents, err := r.installed(p, format)
	if err != nil {
		return nil, err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "etcdshift", Arch: p.arch, Platform: p.os, Version: r.version, MTime: r.date,
		Section: "admin", Maintainer: "the etcdshift authors", Description: summary, Homepage: homepage,
		License: licence,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022, RPM: nfpm.RPM{BuildHost: "reproducible", Summary: summary},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = packager.Package(info, &b)
	return b.Bytes(), err
}

// installed returns the files of a package, including its own folders: rpm removes only listed
// folders.
func (r *release) installed(p platform, format string) (all files.Contents, err error) {
	root, tree := r.staged(p.String()+"-"+format), fstest.MapFS{}
	for name, f := range r.common {
		if to := place(name, format); strings.HasSuffix(to, ".gz") { // manuals are installed compressed
			packed, err := compress(f.Data)
			if err != nil {
				return nil, err
			}
			r.add(tree, to, f.Mode, packed)
		} else if !f.Mode.IsDir() {
			r.add(tree, to, f.Mode, f.Data)
		}
	}
	if err := os.CopyFS(root, tree); err != nil {
		return nil, err
	}
	all = files.Contents{r.content("usr/bin/etcdshift", r.program(p), 0o755)}
	for name, f := range tree {
		switch {
		case !f.Mode.IsDir():
			all = append(all, r.content(name, filepath.Join(root, name), f.Mode))
		case strings.HasPrefix(name, documents):
			folder := r.content(name, "", f.Mode.Perm())
			folder.Type = files.TypeDir
			all = append(all, folder)
		}
	}
	return all, nil
}

func (r *release) content(name, source string, mode fs.FileMode) *files.Content {
	info := &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}
	return &files.Content{Destination: "/" + name, Source: source, FileInfo: info}
}

// place returns the installed path of an archive file.
func place(name, format string) string {
	switch name {
	case "man/etcdshift.1":
		return "usr/share/man/man1/etcdshift.1.gz"
	case "completion/etcdshift.bash":
		return "usr/share/bash-completion/completions/etcdshift"
	case "completion/etcdshift.fish":
		return "usr/share/fish/vendor_completions.d/etcdshift.fish"
	case "completion/_etcdshift":
		return map[string]string{
			"deb": "usr/share/zsh/vendor-completions/_etcdshift", "rpm": "usr/share/zsh/site-functions/_etcdshift",
		}[format]
	}
	return documents + "/" + name
}
