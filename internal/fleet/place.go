package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// object is a file of a place.
type object struct {
	Snapshot
	modified time.Time
	regular  bool
}

// all yields the files of a place, in any order.
func all(ctx context.Context, place string) iter.Seq2[object, error] {
	return stream.Of(func(yield func(object) error) error {
		return filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err = cmp.Or(err, ctx.Err()); err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return yield(objectOf(path, info))
		})
	})
}

func objectOf(path string, info fs.FileInfo) object {
	tag := fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
	return object{Snapshot{Path: path, Bytes: info.Size(), ETag: tag}, info.ModTime(), info.Mode().IsRegular()}
}

// stat returns the file at a path, or an error that is fs.ErrNotExist.
func stat(_ context.Context, path string) (object, error) {
	info, err := os.Stat(path)
	if err != nil {
		return object{}, err
	}
	return objectOf(path, info), nil
}

// open opens the file at a path to be read once, from its beginning.
func open(ctx context.Context, path string) (io.ReadCloser, error) {
	if o, err := stat(ctx, path); err != nil {
		return nil, err
	} else if !o.regular {
		return nil, fmt.Errorf("%s: is no regular file", path)
	}
	return os.Open(path)
}

// read reads a file of at most limit bytes.
func read(ctx context.Context, path string, limit int64) ([]byte, error) {
	text, _, err := input.ReadFile(ctx, path, limit)
	return text, err
}

// write writes a file where nothing is.
func write(_ context.Context, path string, text io.Reader) error {
	f, err := publish.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := io.Copy(f.File(), text); err != nil {
		return err
	}
	return f.Publish()
}

// clean is the name of a place as a list has it.
func clean(place string) string { return filepath.Clean(place) }

// folderOf is the folder of a path, and the name in it.
func folderOf(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i], path[i:]
}
