package s3

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/etcdshift/etcdshift/internal/publish"
)

// Fetch copies the object at path to the end of a file. An object with more than limit bytes
// ([ErrTooLarge]) or without bytes is an error.
func (s *Store) Fetch(ctx context.Context, path string, to *os.File, limit int64) error {
	d := &download{store: s, path: path, to: to, limit: limit}
	err := d.run(ctx)
	if err == nil {
		err = d.compare(to)
	}
	return explain(path, err)
}

// Copy is [Store.Fetch] into a nameless file, positioned at its beginning.
func (s *Store) Copy(ctx context.Context, path string, limit int64) (*os.File, error) {
	file, err := publish.Scratch(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err = s.Fetch(ctx, path, file, limit); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// maxBreaks is the maximum number of broken connections of a download.
const maxBreaks = 20

// slowBreaks is the number of breaks counted for a too slow connection.
const slowBreaks = 5

// download is the state of a download.
type download struct {
	store *Store
	at    Location
	path  string
	to    io.Writer
	limit int64

	begun bool             // the first answer has arrived
	first minio.ObjectInfo // of the first answer
	sse   bool             // encrypted by the server: the ETag is no checksum
	have  int64            // bytes written
}

// brokenConnection is the error of a broken connection; the download can be resumed.
type brokenConnection struct{ error }

// run downloads the object, resuming after broken connections.
func (d *download) run(ctx context.Context) (err error) {
	if d.at, err = Parse(d.path); err != nil {
		return err
	}
	for breaks, connections := 1, 1; ; breaks, connections = breaks+1, connections+1 {
		err = d.resume(ctx)
		broken, is := err.(brokenConnection)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil || !is:
			return err
		case breaks == maxBreaks:
			why := withoutURL(broken.error) // its hint comes first
			return fmt.Errorf("%[2]w: %[3]d of %[4]d bytes, after %[5]d broken connections: %[1]w",
				why, ErrBroken, d.have, d.first.Size, connections)
		}
		if errors.Is(broken.error, ErrSlow) { // a new connection may be faster, but a minute is lost
			breaks = min(breaks+slowBreaks-1, maxBreaks-1)
		}
		select {
		case <-time.After(min(time.Duration(breaks)*100*time.Millisecond, time.Second)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resume requests the missing bytes and copies the answer.
func (d *download) resume(ctx context.Context) error {
	body, err := d.request(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	buf := make([]byte, 256<<10)
	for d.have < d.first.Size {
		n, err := body.Read(buf[:min(int64(len(buf)), d.first.Size-d.have)])
		if _, failed := d.to.Write(buf[:n]); failed != nil {
			return failed
		}
		if d.have += int64(n); err != nil && d.have < d.first.Size {
			return brokenConnection{err}
		}
	}
	return nil
}

// request sends the request, and checks that the answer continues the first answer.
func (d *download) request(ctx context.Context) (io.ReadCloser, error) {
	options := minio.GetObjectOptions{VersionID: d.at.Version}
	options.Set(checksumMode, "ENABLED")
	if d.begun {
		options.VersionID = d.first.VersionID
		options.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
		if d.first.ETag != "" {
			options.Set("If-Match", strconv.Quote(d.first.ETag))
		}
	}
	body, info, header, err := d.store.core.GetObject(ctx, d.at.Bucket, d.at.Key, options)
	if minio.ToErrorResponse(err).Code == preconditionFailed {
		return nil, fmt.Errorf("%w: it was replaced meanwhile", ErrBroken)
	}
	if err != nil {
		return nil, err
	}
	fail := func(err error) (io.ReadCloser, error) {
		_ = body.Close()
		return nil, err
	}
	rest := fmt.Sprintf("bytes %d-%d/%d", d.have, d.first.Size-1, d.first.Size)
	switch {
	case d.begun && (info.ETag != d.first.ETag || info.VersionID != d.first.VersionID):
		return fail(fmt.Errorf("%w: it was replaced meanwhile", ErrBroken))
	case d.begun && header.Get("Content-Range") != rest:
		return fail(fmt.Errorf("%w: the server does not resume a download at a byte", ErrBroken))
	case d.begun:
		return body, nil
	case info.Size < 0:
		return fail(fmt.Errorf("%w: the server does not tell its length", ErrBroken))
	case info.Size == 0:
		empty := errors.New("the object is empty: it has 0 bytes")
		return fail(&Error{d.path, empty, "it was not written to its end: take another copy"})
	case info.Size > d.limit:
		return fail(fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrTooLarge, info.Size, d.limit))
	}
	d.begun, d.first = true, info
	d.sse = header.Get("x-amz-server-side-encryption") != "" ||
		header.Get("x-amz-server-side-encryption-customer-algorithm") != ""
	return body, nil
}

// compare compares the downloaded bytes, at the end of a file, with the server's checksums.
func (d *download) compare(file *os.File) error {
	end, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	content := io.NewSectionReader(file, end-d.have, d.have)
	return compareChecksum(content, d.first, !d.sse)
}

// compareChecksum compares content with the first offered checksum of the whole object. The MD5 in
// an ETag is used for a single-part object without server-side encryption.
func compareChecksum(content io.Reader, info minio.ObjectInfo, plain bool) error {
	for _, kind := range []minio.ChecksumType{
		minio.ChecksumCRC64NVME, minio.ChecksumCRC32C, minio.ChecksumCRC32, minio.ChecksumSHA256, minio.ChecksumSHA1,
	} {
		want := info.Checksum(kind)
		if want == "" || strings.Contains(want, "-") || info.ChecksumMode == minio.ChecksumCompositeMode.String() {
			continue // checksum of the parts' checksums
		}
		return compareSum(content, kind.Hasher(), kind.String(), want, base64.StdEncoding.EncodeToString)
	}
	if _, err := hex.DecodeString(info.ETag); err == nil && len(info.ETag) == 32 && plain {
		return compareSum(content, minio.ChecksumMD5.Hasher(), "MD5", strings.ToLower(info.ETag), hex.EncodeToString)
	}
	return nil
}

func compareSum(content io.Reader, h hash.Hash, kind, want string, encode func([]byte) string) error {
	if _, err := io.Copy(h, content); err != nil {
		return err
	}
	if got := encode(h.Sum(nil)); got != want {
		return fmt.Errorf("%w: its %s is %s, the server has %s", ErrBroken, kind, got, want)
	}
	return nil
}
