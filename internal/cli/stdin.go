package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/snapshot"
)

// scratchOf copies standard input, given as "-", or an object in a bucket into an unnamed file: a
// snapshot is not read sequentially. The copy has the size limit of a compressed snapshot. For any
// other path scratchOf returns nil.
func scratchOf(c *cli.Context, path string, limit int64) (*os.File, error) {
	limit = cmp.Or(limit, snapshot.DefaultMaxExpand)
	switch {
	case path == "-":
		return spool(c, limit)
	case s3.Is(path):
		return fetch(c, path, limit)
	case c.IsSet("wal") && path == c.String("wal"):
		return readWal(c, path)
	}
	return nil, nil
}

func spool(c *cli.Context, limit int64) (*os.File, error) {
	if in, is := c.App.Reader.(*os.File); is && render.IsTerminal(in) {
		return nil, usagef(commandPath(c),
			`"-" reads a snapshot from standard input, and that is a terminal; give it a file or a pipe`)
	}
	if err := solidInput(c); err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	file, err := publish.Scratch(os.TempDir())
	if err != nil {
		return nil, err
	}
	copied := make(chan error, 1)
	go func() { copied <- spoolTo(file, c.App.Reader, limit) }()
	select {
	case err = <-copied:
	case <-c.Context.Done(): // the process ends; otherwise it might wait forever
		return nil, c.Context.Err()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// solidInput returns an error for a sparse file: all holes would be copied.
func solidInput(c *cli.Context) error {
	in, is := c.App.Reader.(*os.File)
	if !is {
		return nil
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return snapshot.Solid(info)
}

// spoolTo copies a possible snapshot. Most other inputs show in the first mebibyte, before they
// fill the disk.
func spoolTo(file io.Writer, from io.Reader, limit int64) error {
	head, err := io.ReadAll(io.LimitReader(from, min(1<<20, limit+1)))
	if err == nil && len(head) > 0 { // an empty input has its own error
		err = snapshot.Begins(head, limit)
	}
	if err != nil && !errors.Is(err, snapshot.ErrExpand) {
		return fmt.Errorf("standard input: %w", err)
	}
	n := int64(0)
	if err == nil {
		n, err = io.Copy(file, io.MultiReader(bytes.NewReader(head), io.LimitReader(from, limit+1-int64(len(head)))))
	}
	if n > limit || errors.Is(err, snapshot.ErrExpand) {
		err = &failure{exitFailed, fmt.Errorf("standard input has more than %d bytes", limit),
			"if you trust its source, raise the limit with --max-expand"}
	}
	return err
}

// piped reports whether standard input is a file; jobs have an empty pipe, or /dev/null.
func piped(c *cli.Context) bool {
	in, is := c.App.Reader.(*os.File)
	if !is {
		return false
	}
	info, err := in.Stat()
	return err == nil && info.Mode().IsRegular()
}
