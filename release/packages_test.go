package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2/files"
)

// Each package has each file once: what one leaves in the folder is not taken into the next.
func TestPackagesHaveTheSameFiles(t *testing.T) {
	r := &release{root: "..", out: t.TempDir(), version: "v0.9.8"}
	p := platform{"linux", "amd64"}
	for _, name := range []string{p.String() + "/etcdshift", "man/etcdshift.1", "man/etcdshift-run.7", "html/run.html", "licences/std/LICENSE", "completion/_etcdshift"} {
		if err := r.stage(name, []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	for format, zsh := range map[string]string{"deb": "/usr/share/zsh/vendor-completions/_etcdshift", "rpm": "/usr/share/zsh/site-functions/_etcdshift"} {
		all, err := r.installed(p, format)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		jobs := 0
		for _, c := range all {
			if c.Type == files.TypeDir {
				continue
			}
			if strings.HasPrefix(c.Destination, "/usr/share/doc/etcdshift/deploy/fleet") {
				jobs++
			} else {
				names = append(names, c.Destination)
			}
			if _, err := os.Stat(c.Source); err != nil {
				t.Error(err)
			}
		}
		slices.Sort(names)
		want := []string{"/usr/bin/etcdshift", "/usr/share/doc/etcdshift/CHANGELOG.md", "/usr/share/doc/etcdshift/LICENSE", "/usr/share/doc/etcdshift/README.md",
			"/usr/share/doc/etcdshift/html/run.html", "/usr/share/doc/etcdshift/licences/std/LICENSE", "/usr/share/man/man1/etcdshift.1.gz",
			"/usr/share/man/man7/etcdshift-run.7.gz", zsh}
		if !slices.Equal(names, want) || jobs != 7 {
			t.Errorf("%s: %q, and %d files of deploy", format, names, jobs)
		}
	}
}
