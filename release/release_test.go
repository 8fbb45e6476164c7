package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelease makes a release twice, in two clones: the files have the same bytes. A machine that
// has nothing but the bundle, no network and no Go, then checks, installs and uses it.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program in two clones")
	}
	dir := t.TempDir()
	key := newKey(t, dir)
	one, two := makeIn(t, filepath.Join(dir, "one"), key), makeIn(t, filepath.Join(dir, "a", "second"), key)
	sum := func(name string) string {
		sum, err := sumOf(name)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	entries, err := os.ReadDir(one)
	if err != nil || len(entries) < 10 {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		if sum(filepath.Join(one, e.Name())) != sum(filepath.Join(two, e.Name())) {
			t.Errorf("%s differs between two clones", e.Name())
		}
	}
	t.Run("bare machine", func(t *testing.T) { useOnBareMachine(t, one) })
	t.Run("image", func(t *testing.T) { useImage(t, one) })
}

// newKey is a key of the test data in a folder.
func newKey(t *testing.T, dir string) string {
	for _, ending := range []string{".key", ".pub"} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", "minisign", "backup"+ending))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "release"+ending), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "release.key")
}

// makeIn clones the project, tags the commit and makes a release for this platform.
func makeIn(t *testing.T, clone, key string) (out string) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(clone), 0o755); err != nil {
		t.Fatal(err)
	}
	do(t, root, "git", "clone", "-q", ".", clone)
	do(t, clone, "git", "tag", "v0.9.8")
	r := &release{version: "v0.9.8", root: clone, out: filepath.Join(clone, "dist"), key: key, url: "https://example.com"}
	r.platforms = []platform{r.host()}
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

// useOnBareMachine needs root and debootstrap: a small Debian with man and minisign is the machine.
func useOnBareMachine(t *testing.T, dist string) {
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("needs debootstrap and root")
	}
	machine := t.TempDir()
	do(t, machine, "debootstrap", "--variant=minbase", "--include=man-db,minisign,rpm", "stable", machine)
	for from, to := range map[string]string{
		filepath.Join(dist, "etcdshift-v0.9.8-airgap.tar"):             "root/bundle.tar",
		filepath.Join("..", "testdata", "calico", "before.db.gz"):      "root/before.db.gz",
		filepath.Join(filepath.Dir(filepath.Dir(dist)), "release.key"): "root/release.key",
		filepath.Join(filepath.Dir(filepath.Dir(dist)), "release.pub"): "root/trusted.pub",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(machine, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
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
rpm --root /root/other -e etcdshift
if find /root/other/usr -name '*etcdshift*' | grep .; then exit 1; fi
etcdshift version
etcdshift verify SHA256SUMS --key /root/trusted.pub
cd /root && gzip -d before.db.gz
etcdshift migrate calico-v3 before.db after.db
etcdshift verify after.db
man 1 etcdshift | cat
man 7 etcdshift-calico-v3 | cat
`)
	for _, want := range []string{"Signature and comment signature verified", "etcdshift   v0.9.8", "projectcalico.org/v3"} {
		if !strings.Contains(out, want) {
			t.Errorf("the machine does not say %q:\n%s", want, out)
		}
	}
}
