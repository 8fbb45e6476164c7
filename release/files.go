package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing/fstest"
)

// add adds a file and its folders to a set of packed files, with the time of the commit and without
// an owner.
func (r *release) add(to fstest.MapFS, name string, mode fs.FileMode, data []byte) {
	to[name] = &fstest.MapFile{Data: data, Mode: mode, ModTime: r.date}
	for dir := path.Dir(name); dir != "." && to[dir] == nil; dir = path.Dir(dir) {
		to[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: r.date}
	}
}

// addFolder adds the files of a folder under another name.
func (r *release) addFolder(to fstest.MapFS, name, dir string) error {
	from := os.DirFS(dir)
	return fs.WalkDir(from, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, file)
		r.add(to, path.Join(name, file), 0o644, data)
		return err
	})
}

// addAll adds the files of another set below a folder.
func (r *release) addAll(to fstest.MapFS, folder string, from fstest.MapFS) {
	for name, f := range from {
		if !f.Mode.IsDir() {
			r.add(to, path.Join(folder, name), f.Mode, f.Data)
		}
	}
}

func packTar(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	if err := t.AddFS(files); err != nil {
		return nil, err
	}
	err := t.Close()
	return b.Bytes(), err
}

func packZip(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if err := z.AddFS(files); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// compress returns bytes that depend only on the data: the header has no name and no time.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// sumOf returns the SHA-256 of a file in hexadecimal.
func sumOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}
