package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

// manifests writes what krew and Homebrew need to install the archives.
func (r *release) manifests(context.Context) error {
	type archive struct{ System, Arch, URL, Sum, Bin, Folder string }
	var archives []archive
	for _, p := range r.platforms {
		name := r.name(p) + ".tar.gz"
		if p.os == "windows" {
			name = r.name(p) + ".zip"
		}
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		archives = append(archives, archive{p.os, p.arch, r.url + "/" + r.version + "/" + name, sum, p.program(), r.name(p)})
	}
	for name, text := range map[string]string{"etcdshift-krew.yaml": krew, "etcdshift.rb": formula} {
		t, err := template.New(name).Funcs(template.FuncMap{
			"on": func(name string) string {
				return map[string]string{"darwin": "macos", "linux": "linux", "amd64": "intel", "arm64": "arm"}[name]
			},
		}).Parse(text)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, map[string]any{"Version": r.version, "Number": strings.TrimPrefix(r.version, "v"), "Summary": summary, "Home": homepage,
			"Archives": archives}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.write(name, []byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}

const krew = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: etcdshift
spec:
  version: {{.Version}}
  homepage: {{.Home}}
  shortDescription: Read and change etcd snapshots offline
  description: |
    etcdshift opens a file of "etcdctl snapshot save" without a server: it reads, checks, compares and
    changes the Kubernetes objects in it and writes a new snapshot.
  platforms:
{{- range .Archives}}
  - selector:
      matchLabels:
        os: {{.System}}
        arch: {{.Arch}}
    uri: {{.URL}}
    sha256: {{.Sum}}
    files:
    - from: {{.Folder}}/{{.Bin}}
      to: .
    - from: {{.Folder}}/LICENSE
      to: .
    bin: {{.Bin}}
{{- end}}
`

const formula = `class Etcdshift < Formula
  desc "Read, change and prove etcd snapshots of Kubernetes clusters"
  homepage "{{.Home}}"
  version "{{.Number}}"
  license "Apache-2.0"
{{range .Archives}}{{if ne .System "windows"}}
  on_{{on .System}} do
    on_{{on .Arch}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
  end
{{end}}{{end}}
  def install
    bin.install "etcdshift"
    man1.install "man/etcdshift.1"
    man7.install Dir["man/*.7"]
    bash_completion.install "completion/etcdshift.bash" => "etcdshift"
    zsh_completion.install "completion/_etcdshift"
    fish_completion.install "completion/etcdshift.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/etcdshift version")
  end
end
`
