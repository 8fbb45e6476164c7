package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Output is a file under construction. Publish gives it its name, in a folder or another place,
// once it is complete, and never takes the name of something else (fs.ErrExist). After an error of
// Publish, and after Discard, nothing is left. Discard after Publish does nothing.
type Output interface {
	File() *os.File
	Publish() error
	Discard() error
}

// Draft is an output with the content of a snapshot, which has no name yet.
type Draft struct {
	output
	src    *Snapshot
	made   Output
	copied *pass[struct{}] // of the pages of src
}

// Begin begins a changed copy of src in out, whose name will be path. The caller ends with Write or
// Discard.
func Begin(path string, out Output, src *Snapshot) *Draft {
	d := &Draft{output: output{file: out.File(), path: path}, src: src, made: out}
	d.copied = newPass(func(ctx context.Context) (struct{}, error) {
		return struct{}{}, copyPages(ctx, d.file, src.file, src.db.Bytes())
	})
	return d
}

// Copy begins to copy the old pages in the background, while changes are planned. It is of no use
// for an output of new pages alone, for which Stop ends it.
func (d *Draft) Copy() { d.copied.start() }

// Stop ends Copy. Write copies the pages where it needs them.
func (d *Draft) Stop() { d.copied.stop() }

// empty drops the copied pages.
func (d *Draft) empty() error {
	d.copied.stop()
	return d.file.Truncate(0)
}

// Discard removes what was written. After Write it does nothing.
func (d *Draft) Discard() error {
	d.copied.stop()
	return d.made.Discard()
}

// Write completes the output and gives it its name, as [Write] says. On any error nothing is left.
func (d *Draft) Write(ctx context.Context, changes iter.Seq2[Change, error], cfg WriteConfig) (WriteResult, error) {
	d.check = cfg.Check
	return publishAs(d.made, func() (res WriteResult, err error) {
		defer d.copied.stop()
		err = d.src.Guard(func() error {
			res, err = d.writeTo(ctx, changes, cfg)
			return err
		})
		if err == nil {
			_, err = d.src.Digest(ctx)
		}
		if now := d.src.unchanged(); now != nil && !errors.Is(err, ErrChanged) {
			if err != nil { // which the change caused
				now = fmt.Errorf("%w: %v", now, err)
			}
			err = d.src.wrap(now)
		}
		return res, err
	})
}

// copyPages copies the first n bytes of in to the beginning of out.
func copyPages(ctx context.Context, out, in *os.File, n int64) error {
	const step = 8 << 20 // bytes between two looks at ctx
	for at := int64(0); at < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		size := min(step, n-at)
		copied, err := copyRange(out, in, at, size)
		if err == nil && copied == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("copy at %d: %w", at, err)
		}
		startWriteback(out, at, copied)
		at += copied
	}
	return nil
}

// copyThrough copies a range through memory.
func copyThrough(out, in *os.File, at, n int64) (int64, error) {
	return io.Copy(io.NewOffsetWriter(out, at), struct{ io.Reader }{io.NewSectionReader(in, at, n)})
}
