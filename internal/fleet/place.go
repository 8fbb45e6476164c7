package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// files reads and writes local files or, with a store, objects in buckets.
type files struct{ *s3.Store }

// filesAt returns files for a path: with a store if the path is in a bucket.
func filesAt(path string) (files, error) {
	if !s3.Is(path) {
		return files{}, nil
	}
	store, err := s3.Open()
	return files{store}, err
}

// file is a local file or an object in a bucket.
type file struct {
	Snapshot
	modified time.Time
	regular  bool
}

// all yields the files of a place, in any order.
func (f files) all(ctx context.Context, place string) iter.Seq2[file, error] {
	return stream.Of(func(yield func(file) error) error {
		if f.Store != nil {
			return stream.Each(f.List(ctx, place), func(o s3.Object) error { return yield(fileOfObject(o)) })
		}
		return filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err = cmp.Or(err, ctx.Err()); err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return yield(fileOf(path, info))
		})
	})
}

func fileOf(path string, info fs.FileInfo) file {
	tag := fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
	return file{Snapshot{Path: path, Bytes: info.Size(), ETag: tag}, info.ModTime(), info.Mode().IsRegular()}
}

func fileOfObject(o s3.Object) file {
	return file{Snapshot{Path: o.Path, Bytes: o.Size, ETag: o.ETag}, o.Modified, true}
}

// stat returns the file at a path, or fs.ErrNotExist.
func (f files) stat(ctx context.Context, path string) (file, error) {
	if f.Store != nil {
		for o, err := range f.List(ctx, path) { // the object at the path itself is first
			if err != nil {
				return file{}, err
			}
			if o.Path == path {
				return fileOfObject(o), nil
			}
			break
		}
		return file{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	return fileOf(path, info), nil
}

// open opens the file at a path for one sequential read.
func (f files) open(ctx context.Context, path string, limit int64) (io.ReadCloser, error) {
	if f.Store != nil {
		return f.Copy(ctx, path, limit)
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file", path)
	}
	return os.Open(path)
}

// read reads a file of at most limit bytes.
func (f files) read(ctx context.Context, path string, limit int64) ([]byte, error) {
	if f.Store == nil {
		text, _, err := input.ReadFile(ctx, path, limit)
		return text, err
	}
	object, err := f.open(ctx, path, limit)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	return io.ReadAll(object)
}

// write writes a new file.
func (f files) write(ctx context.Context, path string, text io.Reader) error {
	made, err := f.create(ctx, path)
	if err != nil {
		return err
	}
	defer made.Discard()
	if _, err := io.Copy(made.File(), text); err != nil {
		return err
	}
	return made.Publish()
}

func (f files) create(ctx context.Context, path string) (*publish.File, error) {
	if f.Store == nil {
		return publish.Create(path)
	}
	return publish.CreateElsewhere(path, func(file *os.File) error { return f.Put(ctx, path, file) })
}

// clean returns a place as stored in a list.
func clean(place string) string {
	if s3.Is(place) {
		return place
	}
	return filepath.Clean(place)
}

// within reports whether a path is in a place; for a bucket, whether the path begins with the
// place.
func within(place, path string) bool {
	if s3.Is(place) {
		return strings.HasPrefix(path, place)
	}
	below, err := filepath.Rel(place, path)
	return err == nil && place != "" && path != "" && path == filepath.Clean(path) && below != "." &&
		filepath.IsLocal(below)
}

// nameable returns an error for a path that would change when written to a list and read back.
func nameable(path string) error {
	if !utf8.ValidString(path) {
		return errors.New("its name is not UTF-8")
	}
	if !s3.Is(path) {
		return nil
	}
	at, err := s3.Parse(path)
	if err == nil && at.Version != "" {
		err = errors.New("its key looks like the version of an object")
	}
	return err
}

// folderOf returns the folder of a path and the file name.
func folderOf(path string) (folder, name string) {
	if !s3.Is(path) {
		return filepath.Split(path)
	}
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i], path[i:]
}

// below returns the path of a file relative to a folder, with slashes, or the whole path if the
// file is outside.
func below(folder, path string) (rest string, inside bool) {
	if !s3.Is(path) {
		folder, path = filepath.ToSlash(folder), filepath.ToSlash(path)
	}
	return strings.CutPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
