package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestRelease builds a release in two clones, and requires the same bytes. A machine with only the
// bundle, without network and Go, then checks, installs and uses it.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program in two clones")
	}
	dir := t.TempDir()
	key := newKey(t, dir)
	one, two := makeIn(t, filepath.Join(dir, "one"), key), makeIn(t, filepath.Join(dir, "a", "second"), key)
	entries := must(os.ReadDir(one))
	if len(entries) < 10 {
		t.Fatal(len(entries))
	}
	for _, e := range entries {
		if must(sumOf(filepath.Join(one, e.Name()))) != must(sumOf(filepath.Join(two, e.Name()))) {
			t.Errorf("%s differs between two clones", e.Name())
		}
	}
	t.Run("components", func(t *testing.T) { readComponents(t, one) })
	t.Run("bare machine", func(t *testing.T) { useOnBareMachine(t, one, key) })
	t.Run("image", func(t *testing.T) { useImage(t, one) })
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newKey copies a key of the test data into a folder.
func newKey(t *testing.T, dir string) string {
	for _, ending := range []string{".key", ".pub"} {
		write(t, filepath.Join(dir, "release"+ending), must(os.ReadFile("../testdata/minisign/backup"+ending)))
	}
	return filepath.Join(dir, "release.key")
}

// makeIn clones the project, tags the commit and builds a release for this platform.
func makeIn(t *testing.T, clone, key string) (out string) {
	do(t, "..", "git", "clone", "-q", ".", clone)
	do(t, clone, "git", "tag", "v0.9.8")
	r := &release{version: "v0.9.8", root: clone, out: filepath.Join(clone, "dist"), key: key,
		url: "https://example.com"}
	r.platforms = []platform{host}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.out
}

func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, out)
	}
	return string(out)
}

// readComponents requires that relations in the list of components refer to listed components.
func readComponents(t *testing.T, dist string) {
	text := must(os.ReadFile(filepath.Join(dist, fmt.Sprintf("etcdshift-v0.9.8-%s.cdx.json", host))))
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	needs := *(*bom.Dependencies)[0].Dependencies
	if len(needs) < 100 {
		t.Errorf("%d components", len(needs))
	}
	for _, needed := range needs {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.BOMRef == needed }) {
			t.Errorf("%s is not listed", needed)
		}
	}
	escaped := component(cyclonedx.ComponentTypeLibrary, "example.com/A_b/c", "v2.0.1+incompatible", "MIT").PackageURL
	if want := "pkg:golang/example.com/a_b/c@v2.0.1%2Bincompatible"; escaped != want {
		t.Errorf("%s, want %s", escaped, want)
	}
}

// useOnBareMachine needs root and debootstrap: the machine is a small Debian with man and minisign.
func useOnBareMachine(t *testing.T, dist, key string) {
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("needs debootstrap and root")
	}
	machine := t.TempDir()
	do(t, machine, "debootstrap", "--variant=minbase", "--include=man-db,minisign,rpm", "stable", machine)
	for from, to := range map[string]string{
		filepath.Join(dist, "etcdshift-v0.9.8-airgap.tar"): "root/bundle.tar",
		"../testdata/calico/before.db.gz":                  "root/before.db.gz",
		strings.TrimSuffix(key, ".key") + ".pub":           "root/trusted.pub",
	} {
		write(t, filepath.Join(machine, to), must(os.ReadFile(from)))
	}
	out := do(t, machine, "unshare", "--net", "chroot", machine, "/bin/sh", "-ec", `
cd /root && tar -xf bundle.tar && cd etcdshift-v0.9.8
if command -v go; then exit 1; fi
sha256sum -c SHA256SUMS
minisign -V -p /root/trusted.pub -m SHA256SUMS
dpkg -i etcdshift-v0.9.8-linux-*.deb
rpm --root /root/other --initdb
rpm -K etcdshift-v0.9.8-linux-*.rpm
rpm --root /root/other -i etcdshift-v0.9.8-linux-*.rpm
rpm --root /root/other -V etcdshift
chroot /root/other /usr/bin/etcdshift version
installed() { sort | sed 's/vendor-completions/site-functions/'; }
dpkg -L etcdshift | while read f; do [ -d "$f" ] || echo "$f"; done | installed > /root/deb
rpm --root /root/other -ql etcdshift | while read f; do [ -d "/root/other$f" ] || echo "$f"; done | installed > /root/rpm
cmp /root/deb /root/rpm
grep -v /licences/ /root/deb
rpm --root /root/other -e etcdshift
if find /root/other/usr -name '*etcdshift*' | grep .; then exit 1; fi
etcdshift version
etcdshift verify SHA256SUMS --key /root/trusted.pub
cd /root && gzip -d before.db.gz
etcdshift migrate calico-v3 before.db after.db
etcdshift verify after.db
man 1 etcdshift | cat
etcdshift help restore.md
`)
	for _, want := range []string{
		"Signature and comment signature verified", "etcdshift   v0.9.8", "projectcalico.org/v3",
		"/usr/bin/etcdshift\n", "/usr/share/man/man1/etcdshift.1.gz\n", "/usr/share/zsh/site-functions/_etcdshift\n",
		"/usr/share/bash-completion/completions/etcdshift\n", "/usr/share/fish/vendor_completions.d/etcdshift.fish\n",
		"/usr/share/doc/etcdshift/docs/guides/restore.md\n", "/usr/share/doc/etcdshift/deploy/fleet/job.yaml\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the machine does not say %q:\n%s", want, out)
		}
	}
}
