package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func (r *release) write(name string, data []byte) error {
	return create(filepath.Join(r.out, name), func(w io.Writer) error { _, err := w.Write(data); return err })
}

// made are the names of the files of the release so far.
func (r *release) made() (names []string, err error) {
	entries, err := os.ReadDir(r.out)
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// sums writes SHA256SUMS and, with a key, its signature.
func (r *release) sums(ctx context.Context) error {
	names, err := r.made()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	if err := r.write("SHA256SUMS", []byte(b.String())); err != nil || r.key == "" {
		return err
	}
	path, err := filepath.Abs(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	key, err := filepath.Abs(r.key)
	if err != nil {
		return err
	}
	if _, err = r.ask(ctx, "sign", path, "--key", key, "--time", r.date.Format(time.RFC3339)); err != nil {
		return err
	}
	public := strings.TrimSuffix(key, filepath.Ext(key)) + ".pub"
	return create(filepath.Join(r.out, "etcdshift.pub"), func(w io.Writer) error { return copyFile(w, public) })
}

// bundle makes one tar of everything, with the guide unpacked and how to check it.
func (r *release) bundle(context.Context) error {
	names, err := r.made()
	if err != nil {
		return err
	}
	folder := "etcdshift-" + r.version
	var files []file
	for _, name := range names {
		files = append(files, file{folder + "/" + name, filepath.Join(r.out, name), 0o644})
	}
	if err := r.stage("VERIFY.txt", []byte(strings.ReplaceAll(verify, "vX.Y.Z", r.version))); err != nil {
		return err
	}
	files = append(files, file{folder + "/VERIFY.txt", r.staged("VERIFY.txt"), 0o644})
	under, err := r.folders("deploy", "html", "licences", "man")
	if err != nil {
		return err
	}
	for _, f := range under {
		f.name = folder + "/" + f.name
		files = append(files, f)
	}
	return create(filepath.Join(r.out, folder+"-airgap.tar"), func(w io.Writer) error { return writeTar(w, r.date, files) })
}

const verify = `etcdshift vX.Y.Z, everything for a machine without a network

1. Is it whole? In this folder:

       sha256sum -c SHA256SUMS

2. Is it ours? SHA256SUMS.minisig is a signature of SHA256SUMS. Get the public key another way than this
   file, for example from the web page of the project on another day, and keep it. With minisign:

       minisign -V -p etcdshift.pub -m SHA256SUMS

   or with an etcdshift that you trust already:

       etcdshift verify SHA256SUMS --key etcdshift.pub

   Without SHA256SUMS.minisig this release is not signed: step 1 guards against accidents only.

3. Install one of them:

       dpkg -i etcdshift-vX.Y.Z-linux-amd64.deb
       rpm -i etcdshift-vX.Y.Z-linux-amd64.rpm
       tar -xzf etcdshift-vX.Y.Z-linux-amd64.tar.gz
       podman load -i etcdshift-vX.Y.Z-image.tar

4. Read: html/index.html in a browser; after dpkg or rpm "man 7 etcdshift", "man etcdshift-restore";
   before that "man -l man/etcdshift.7".

deploy/ is the Job of html/fleet.html. *.cdx.json and *.spdx.json list what each program is made of, licences/ has the licences
of all of it.
The same commit, tag and Go version make the same bytes: "make dist VERSION=vX.Y.Z" in a clone, then compare SHA256SUMS.
`
