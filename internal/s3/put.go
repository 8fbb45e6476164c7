package s3

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

const (
	// sumKey is the name of the metadata that hold the SHA-256 of an object of Put.
	sumKey = "Etcdshift-Sha256"

	maxParts = 10_000 // that a server takes
	atOnce   = 4      // parts on their way
)

// Put makes the object at path from a complete file, and compares what the server has with it. An
// object that is there already is an error that wraps fs.ErrExist, unless it has the same bytes.
// After any other error no object is there, but for [ErrUncertain].
func (s *Store) Put(ctx context.Context, path string, from *os.File) error {
	u := &upload{store: s, path: path, file: from}
	err := u.prepare(ctx)
	if err == nil && !u.there {
		err = u.send(ctx)
	}
	return about(path, err)
}

// upload is a file on its way.
type upload struct {
	store   *Store
	path    string
	at      Location
	file    *os.File
	size    int64
	sum     string // SHA-256, hex
	there   bool   // an object with these bytes was there before
	id      string // of the upload in parts; "" for an object sent at once
	pending bool   // a try to make the object was not refused: after a failure it may still appear
}

// prepare takes the SHA-256 and looks whether an object has taken the name since the start.
func (u *upload) prepare(ctx context.Context) (err error) {
	if u.at, err = Parse(u.path); err != nil {
		return err
	}
	info, err := u.file.Stat()
	if err != nil {
		return err
	}
	u.size = info.Size()
	whole := sha256.New()
	if _, err := io.Copy(whole, u.part(0, u.size)); err != nil {
		return err
	}
	u.sum = hex.EncodeToString(whole.Sum(nil))
	u.there, err = u.sameObject(ctx)
	return err
}

// part reads a range of the file, and can be read again.
func (u *upload) part(from, size int64) *io.SectionReader {
	return io.NewSectionReader(u.file, from, size)
}

// sameObject reads an object that has the name: true for one with the same bytes, false for none,
// and fs.ErrExist for another.
func (u *upload) sameObject(ctx context.Context) (bool, error) {
	found, err := u.store.find(ctx, u.path)
	switch {
	case err != nil || found == nil:
		return false, err
	case found.UserMetadata[sumKey] != u.sum:
		return false, exists(u.path)
	}
	stored := sha256.New() // anyone may have written the metadata
	d := &download{store: u.store, path: u.path, to: stored, limit: u.size}
	if err := d.run(ctx); err != nil && !errors.Is(err, ErrTooLarge) {
		return false, err
	}
	if hex.EncodeToString(stored.Sum(nil)) != u.sum {
		return false, exists(u.path)
	}
	return true, nil
}

// send uploads the file, and settles what a failure left.
func (u *upload) send(ctx context.Context) error {
	info, complete, err := u.upload(ctx)
	if err == nil {
		return u.confirm(ctx, info)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.store.cleanup)
	defer cancel()
	if u.id != "" {
		// Parts that stay are for the lifecycle rule.
		left := u.store.core.AbortMultipartUpload(last, u.at.Bucket, u.at.Key, u.id)
		aborted := left == nil || minio.ToErrorResponse(left).StatusCode == http.StatusNotFound
		u.pending = u.pending && !aborted
	}
	switch {
	case !complete:
		return err
	case ctx.Err() != nil:
		return u.resolve(last, err)
	}
	return u.resolve(ctx, err) // which reads the whole object, if there is one
}

// resolve finds out what became of an object after err answered the request that makes it.
func (u *upload) resolve(ctx context.Context, err error) error {
	answer := minio.ToErrorResponse(err)
	taken := answer.StatusCode == http.StatusPreconditionFailed || answer.StatusCode == http.StatusConflict
	switch {
	case !u.pending && answer.StatusCode == http.StatusNotImplemented:
		why := errors.New("the server cannot be told to keep an existing object (If-None-Match is not implemented)")
		return &Error{u.path, why, "write to a file, and copy it with a tool of the server"}
	case taken, answer.StatusCode == http.StatusNotFound: // the upload is gone: an answer may have been lost
	case !u.pending && 400 <= answer.StatusCode && answer.StatusCode < 500:
		return err
	}
	written, looked := u.sameObject(ctx)
	switch {
	case written:
		return nil
	case looked == nil && taken && !u.pending:
		return &Error{u.path, errors.New("the server says that the object is there or being written, and shows none"),
			"try again; if it stays, the object was deleted in a bucket with versions: remove the delete marker, " +
				"or name another object"}
	case looked == nil && !u.pending:
		return err
	case errors.Is(looked, fs.ErrExist):
		return looked
	}
	return fmt.Errorf("%w: %v", ErrUncertain, about(u.path, err)) // %v: it may be an interruption
}

// upload sends the file. complete tells that the request was sent that makes the object.
func (u *upload) upload(ctx context.Context) (info minio.UploadInfo, complete bool, err error) {
	core, last := u.store.core, context.WithValue(ctx, unrefusedKey{}, &u.pending)
	options := minio.PutObjectOptions{UserMetadata: map[string]string{sumKey: u.sum}, DisableContentSha256: true}
	size := max(u.store.part, (u.size+maxParts-1)/maxParts)
	if u.size <= size {
		options.SetMatchETagExcept("*")
		md5, sum, err := u.sums(0, u.size)
		if err != nil {
			return info, false, err
		}
		info, err = core.PutObject(last, u.at.Bucket, u.at.Key, u.part(0, u.size), u.size, md5, sum, options)
		return info, true, err
	}
	if u.id, err = core.NewMultipartUpload(ctx, u.at.Bucket, u.at.Key, options); err != nil {
		return info, false, err
	}
	parts, err := u.parts(ctx, size)
	if err != nil {
		return info, false, err
	}
	if there, err := u.sameObject(ctx); err != nil || there { // for servers that ignore the header
		return info, there, cmp.Or(err, errors.New("the object is there"))
	}
	// PutObject of the library would lose the header on the way to this request.
	options = minio.PutObjectOptions{}
	options.SetMatchETagExcept("*")
	info, err = core.CompleteMultipartUpload(last, u.at.Bucket, u.at.Key, u.id, parts, options)
	return info, true, err
}

// parts sends the parts, a few at once.
func (u *upload) parts(ctx context.Context, size int64) ([]minio.CompletePart, error) {
	parts := make([]minio.CompletePart, int(math.Ceil(float64(u.size)/float64(size))))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range parts {
		group.Go(func() error {
			from := int64(i) * size
			length := min(size, u.size-from)
			if err := ctx.Err(); err != nil {
				return err
			}
			md5, sum, err := u.sums(from, length)
			if err != nil {
				return err
			}
			options := minio.PutObjectPartOptions{Md5Base64: md5, Sha256Hex: sum, DisableContentSha256: true}
			sent, err := u.store.core.PutObjectPart(
				ctx, u.at.Bucket, u.at.Key, u.id, i+1, u.part(from, length), length, options)
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: sent.ETag}
			return err
		})
	}
	return parts, group.Wait()
}

// sums are the checksums that go with a request: the server compares them, and a bucket with object
// lock asks for the MD5.
func (u *upload) sums(from, size int64) (md5Base64, sha256Hex string, err error) {
	m, s := md5.New(), sha256.New()
	_, err = io.Copy(io.MultiWriter(m, s), u.part(from, size))
	return base64.StdEncoding.EncodeToString(m.Sum(nil)), hex.EncodeToString(s.Sum(nil)), err
}

// confirm compares the object with the file.
func (u *upload) confirm(ctx context.Context, made minio.UploadInfo) error {
	var options minio.StatObjectOptions
	options.VersionID = made.VersionID
	options.Set(checksumMode, "ENABLED")
	info, err := u.store.core.StatObject(ctx, u.at.Bucket, u.at.Key, options)
	switch {
	case minio.ToErrorResponse(err).StatusCode == http.StatusNotFound:
		err = errors.New("it was uploaded, and is not there any more")
	case err != nil:
		// %v: it may be an interruption
		err = fmt.Errorf("it was uploaded, and cannot be looked at: %v", about(u.path, err))
	case info.ETag != made.ETag && info.ETag != "" && made.ETag != "":
		err = errors.New("it was uploaded, and another object has replaced it")
	case info.Size != u.size:
		err = fmt.Errorf("it was uploaded with %d bytes, the server has %d", u.size, info.Size)
	default:
		err = compareChecksum(u.part(0, u.size), info, false)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return nil
}
