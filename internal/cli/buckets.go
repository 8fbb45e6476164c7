package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/s3"
)

// fetch copies the object at path into an unnamed file.
func fetch(c *cli.Context, path string, limit int64) (*os.File, error) {
	store, err := s3.Open()
	if err != nil {
		return nil, err
	}
	return store.Copy(c.Context, path, limit)
}

// readSmall returns a function that reads the small file or object of a flag or argument.
func readSmall(c *cli.Context) func(ctx context.Context, name, path string) ([]byte, error) {
	return func(ctx context.Context, name, path string) ([]byte, error) {
		if !s3.Is(path) {
			return input.ReadFlag(ctx, name, path)
		}
		file, err := fetch(c, path, input.MaxFlagFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer file.Close()
		return io.ReadAll(io.NewSectionReader(file, 0, input.MaxFlagFile))
	}
}

// uploadTo refuses an existing object and returns the function that writes the object; nil for a
// file path.
func uploadTo(c *cli.Context, path string) (upload func(file *os.File) error, err error) {
	if !s3.Is(path) {
		return nil, nil
	}
	store, err := s3.Open()
	if err != nil {
		return nil, err
	}
	return func(file *os.File) error { return store.Put(c.Context, path, file) }, store.Vacant(c.Context, path)
}

// create starts the file or object at path, which must not exist.
func create(c *cli.Context, path string) (*publish.File, error) {
	upload, err := uploadTo(c, path)
	switch {
	case err != nil:
		return nil, err
	case upload != nil:
		return publish.CreateElsewhere(path, upload)
	}
	return publish.Create(path)
}

// onlyFile refuses an object for an argument restricted to files.
func onlyFile(c *cli.Context, name, path string) error {
	if s3.Is(path) {
		return usagef(commandPath(c), "%s takes a file, not an object in a bucket: copy it first", name)
	}
	return nil
}
