package main

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	summary  = "read, change and prove etcd snapshots of Kubernetes clusters"
	homepage = "https://github.com/etcdshift/etcdshift"
	licence  = "Apache-2.0"
)

// packages makes a deb and an rpm for each Linux platform.
func (r *release) packages(context.Context) error {
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(p, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) pack(p platform, format string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	contents, err := r.installed(p, format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "etcdshift", Arch: p.arch, Platform: p.os, Version: r.version, MTime: r.date,
		Section: "admin", Maintainer: "the etcdshift authors", Description: summary, Homepage: homepage, License: licence,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			RPM: nfpm.RPM{BuildHost: "reproducible", Summary: summary},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	return create(filepath.Join(r.out, r.name(p)+"."+format), func(w io.Writer) error { return packager.Package(info, w) })
}

// installed says where a package of a format puts the contents.
func (r *release) installed(p platform, format string) (all files.Contents, err error) {
	from, err := r.contents(p)
	if err != nil {
		return nil, err
	}
	for _, f := range from {
		mode := os.FileMode(f.mode)
		to, content := place(f.name, format), &files.Content{Source: f.path}
		if strings.HasPrefix(to, "/usr/share/man/") { // manuals are kept compressed
			content.Source = r.staged("compressed/" + f.name + ".gz")
			if err := r.compress(f.path, content.Source); err != nil {
				return nil, err
			}
			to += ".gz"
		}
		content.Destination, content.FileInfo = to, &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}
		all = append(all, content)
	}
	return append(all, r.foldersOf(all)...), nil
}

const documents = "/usr/share/doc/etcdshift"

// foldersOf are those that a package brings with its files: rpm removes no others with it.
func (r *release) foldersOf(of files.Contents) (all files.Contents) {
	seen := map[string]bool{}
	for _, f := range of {
		for dir := path.Dir(f.Destination); strings.HasPrefix(dir, documents) && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			info := &files.ContentFileInfo{Mode: 0o755, MTime: r.date, Owner: "root", Group: "root"}
			all = append(all, &files.Content{Destination: dir, Type: files.TypeDir, FileInfo: info})
		}
	}
	return all
}

// place is where a file of an archive is on a machine with a package manager.
func place(name, format string) string {
	dir, base := path.Split(name)
	switch dir {
	case "man/":
		return "/usr/share/man/man" + strings.TrimPrefix(path.Ext(base), ".") + "/" + base
	case "completion/":
		return map[string]string{
			"etcdshift.bash": "/usr/share/bash-completion/completions/etcdshift",
			"_etcdshift":     map[string]string{"deb": "/usr/share/zsh/vendor-completions/", "rpm": "/usr/share/zsh/site-functions/"}[format] + base,
			"etcdshift.fish": "/usr/share/fish/vendor_completions.d/etcdshift.fish",
		}[base]
	}
	if name == "etcdshift" {
		return "/usr/bin/etcdshift"
	}
	return documents + "/" + name
}

// compress makes the compressed copy of a file, once for all packages.
func (r *release) compress(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	return create(to, func(w io.Writer) error { return gzipped(w, from) })
}
