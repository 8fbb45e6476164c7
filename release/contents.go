package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"
	"text/template"
	"time"
)

// collect fills r.common with the files that accompany the program in archives and packages of all
// platforms: completion, the manual page, the guide, licenses, and the Job of docs/guides/fleet.md.
func (r *release) collect(ctx context.Context) error {
	r.common = fstest.MapFS{}
	for name, args := range map[string][]string{
		"man/etcdshift.1":           {"man"},
		"completion/etcdshift.bash": {"completion", "bash"},
		"completion/_etcdshift":     {"completion", "zsh"},
		"completion/etcdshift.fish": {"completion", "fish"},
	} {
		out, err := r.ask(ctx, args...)
		if err != nil {
			return err
		}
		r.add(r.common, name, 0o644, []byte(out))
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		r.add(r.common, name, 0o644, data)
	}
	for _, name := range []string{"deploy", "docs"} {
		if err := r.addFolder(r.common, name, filepath.Join(r.root, name)); err != nil {
			return err
		}
	}
	delete(r.common, "docs/docs.go")
	return r.addLicences(ctx)
}

// archives writes a tar.gz for each platform, and a zip for Windows.
func (r *release) archives(context.Context) error {
	for _, p := range r.platforms {
		files := fstest.MapFS{}
		r.addAll(files, r.name(p), r.common)
		program, err := os.ReadFile(r.program(p))
		if err != nil {
			return err
		}
		r.add(files, path.Join(r.name(p), p.program()), 0o755, program)
		packed, err := packArchive(p, files)
		if err != nil {
			return err
		}
		if err := r.write(r.archive(p), packed); err != nil {
			return err
		}
	}
	return nil
}

func packArchive(p platform, files fstest.MapFS) ([]byte, error) {
	if p.os == "windows" {
		return packZip(files)
	}
	packed, err := packTar(files)
	if err != nil {
		return nil, err
	}
	return compress(packed)
}

// texts are templates: the manifests of krew and Homebrew, and instructions to check the bundle.
//
//go:embed texts
var texts embed.FS

// archive has the template values for a platform's archive.
type archive struct{ OS, Arch, URL, Sum, Program, Folder string }

// fill fills a template with the values of the release.
func (r *release) fill(name string) ([]byte, error) {
	var archives []archive
	for _, p := range r.platforms {
		sum, err := sumOf(filepath.Join(r.out, r.archive(p)))
		if err != nil {
			return nil, err
		}
		url := r.url + "/" + r.version + "/" + r.archive(p)
		archives = append(archives, archive{p.os, p.arch, url, sum, p.program(), r.name(p)})
	}
	t, err := template.ParseFS(texts, "texts/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Version": r.version, "Number": strings.TrimPrefix(r.version, "v"), "Home": homepage, "Archives": archives,
	})
	return b.Bytes(), err
}

// manifests writes the manifests of krew and Homebrew for the archives.
func (r *release) manifests(context.Context) error {
	for _, name := range []string{"etcdshift-krew.yaml", "etcdshift.rb"} {
		text, err := r.fill(name)
		if err != nil {
			return err
		}
		if err := r.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// sums writes SHA256SUMS.
func (r *release) sums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	return r.write("SHA256SUMS", []byte(b.String()))
}

// sign signs SHA256SUMS if a key is given.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		return nil
	}
	key, err := filepath.Abs(r.key)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	if _, err = r.ask(ctx, "sign", path, "--key", key, "--time", r.date.Format(time.RFC3339)); err != nil {
		return err
	}
	public, err := os.ReadFile(strings.TrimSuffix(key, filepath.Ext(key)) + ".pub")
	if err != nil {
		return err
	}
	return r.write("etcdshift.pub", public)
}

// bundle writes one tar of all files, with the guide unpacked and instructions to check it.
func (r *release) bundle(context.Context) error {
	files, folder := fstest.MapFS{}, "etcdshift-"+r.version
	r.addAll(files, folder, r.common)
	verify, err := r.fill("VERIFY.txt")
	if err != nil {
		return err
	}
	r.add(files, path.Join(folder, "VERIFY.txt"), 0o644, verify)
	if err := r.addFolder(files, folder, r.out); err != nil {
		return err
	}
	packed, err := packTar(files)
	if err != nil {
		return err
	}
	return r.write(folder+"-airgap.tar", packed)
}
