package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/internal/publish"
)

// Draft is an output under construction, which has no name yet. The pages that every change leaves
// as they are are copied in the background from the beginning on, while the changes are planned.
type Draft struct {
	output
	src    *Snapshot
	made   *publish.File
	copied *copyPass
}

// copyPass copies a range of a file on its own goroutine.
type copyPass struct {
	done   chan struct{}
	cancel context.CancelFunc
	err    error
}

// Upload gives a complete and verified file a name in a place that is no folder, such as a bucket;
// nil stands for folders. It must never take the name of something else (fs.ErrExist). The file has
// no name, and is gone when Upload returns.
type Upload func(file *os.File) error

// create creates the file that is to be named path.
func (u Upload) create(path string) (*publish.File, error) {
	if u == nil {
		return publish.Create(path)
	}
	return publish.CreateElsewhere(path, u)
}

// Begin creates an output at path, which must not exist (fs.ErrExist), and begins to copy src. The
// caller ends with Write or Discard.
func Begin(path string, src *Snapshot) (*Draft, error) { return Upload(nil).Begin(path, src) }

// Begin is [Begin] for an output that u names.
func (u Upload) Begin(path string, src *Snapshot) (*Draft, error) {
	made, err := u.create(path)
	if err != nil {
		return nil, err
	}
	o := output{file: made.File(), path: path}
	return &Draft{output: o, src: src, made: made, copied: startCopy(o.file, src)}, nil
}

func startCopy(out *os.File, src *Snapshot) *copyPass {
	ctx, cancel := context.WithCancel(context.Background())
	p := &copyPass{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.err = copyPages(ctx, out, src.file, src.db.Bytes())
	}()
	return p
}

// Stop ends the copying, for an output that will have none of the pages of the input. Write begins
// anew where it needs them.
func (d *Draft) Stop() {
	d.copied.cancel()
	<-d.copied.done
}

// Discard removes what was written. After Write it does nothing.
func (d *Draft) Discard() error {
	d.Stop()
	return d.made.Discard()
}

// Write completes the output and gives it its name, as [Write] says. On any error nothing is left.
func (d *Draft) Write(ctx context.Context, changes iter.Seq2[Change, error], cfg WriteConfig) (WriteResult, error) {
	d.check = cfg.Check
	return publishAs(d.made, func() (res WriteResult, err error) {
		defer d.Stop()
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

// wait waits for the copy.
func (p *copyPass) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
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
