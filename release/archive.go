package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is a file of an archive.
type file struct {
	name string // in the archive
	path string // on disk
	mode fs.FileMode
}

// contents are the files that each archive and package of a platform has: the program, completion,
// manual pages, the guide, and the Job of docs/guides/fleet.md.
func (r *release) contents(p platform) (all []file, err error) {
	all = []file{{p.program(), r.program(p), 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		all = append(all, file{name, filepath.Join(r.root, name), 0o644})
	}
	folders, err := r.folders("completion", "deploy", "html", "licences", "man")
	return append(all, folders...), err
}

// folders are the files of folders by these names: deploy is one of the clone, others are staged.
func (r *release) folders(names ...string) (all []file, err error) {
	for _, name := range names {
		dir := r.staged(name)
		if name == "deploy" {
			dir = filepath.Join(r.root, name)
		}
		under, err := filesUnder(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(all, under...)
	}
	return all, nil
}

// filesUnder are the files below a folder, by name, with another folder in front.
func filesUnder(dir, as string) (all []file, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all = append(all, file{filepath.ToSlash(filepath.Join(as, name)), path, 0o644})
		return err
	})
	return all, err
}

// archives makes a tar.gz for each platform, and a zip for Windows.
func (r *release) archives(context.Context) error {
	for _, p := range r.platforms {
		files, err := r.contents(p)
		if err != nil {
			return err
		}
		for i := range files {
			files[i].name = r.name(p) + "/" + files[i].name
		}
		path := filepath.Join(r.out, r.name(p))
		if p.os == "windows" {
			err = create(path+".zip", func(w io.Writer) error { return writeZip(w, r.date, files) })
		} else {
			err = create(path+".tar.gz", func(w io.Writer) error { return writeTarGz(w, r.date, files) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// create makes a file.
func create(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if end := f.Close(); err == nil {
		err = end
	}
	return err
}

func writeTarGz(w io.Writer, date time.Time, files []file) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return err
	}
	if err := writeTar(z, date, files); err != nil {
		return err
	}
	return z.Close()
}

// writeTar writes files as of root, with the time of the commit.
func writeTar(w io.Writer, date time.Time, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		info, err := os.Stat(f.path)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: info.Size(), ModTime: date, Format: tar.FormatPAX}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if err := copyFile(t, f.path); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, date time.Time, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		head.SetMode(f.mode)
		to, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		if err := copyFile(to, f.path); err != nil {
			return err
		}
	}
	return z.Close()
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// gzipped writes a compressed copy whose bytes depend on the file alone.
func gzipped(w io.Writer, path string) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := copyFile(z, path); err != nil {
		return err
	}
	return z.Close()
}
