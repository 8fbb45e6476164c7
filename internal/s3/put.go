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
	// sumKey is the metadata name for the SHA-256 of an object written by Put.
	sumKey = "Etcdshift-Sha256"

	maxParts = 10_000 // limit of servers
	atOnce   = 4      // parts uploaded concurrently
)

// Put creates the object at path from a complete file, and compares the stored object with the
// file. An existing object is an error that wraps fs.ErrExist, unless its bytes are the same. After
// any other error no object exists, except for [ErrUncertain].
func (s *Store) Put(ctx context.Context, path string, from *os.File) error {
	u := &upload{store: s, path: path, file: from}
	err := u.prepare(ctx)
	if err == nil && !u.there {
		err = u.send(ctx)
	}
	return explain(path, err)
}

// upload is the state of an upload.
type upload struct {
	store   *Store
	path    string
	at      Location
	file    *os.File
	size    int64
	sum     string // SHA-256, hex
	there   bool   // an object with these bytes already existed
	id      string // of a multipart upload; "" for a single request
	pending bool   // an attempt to create the object was not refused: after a failure the object may still appear
}

// prepare computes the SHA-256 and checks whether the object exists.
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

// part returns a reader of a range of the file; it can be rewound.
func (u *upload) part(from, size int64) *io.SectionReader {
	return io.NewSectionReader(u.file, from, size)
}

// sameObject compares an existing object at the path with the file: true for the same bytes, false
// for no object, fs.ErrExist for other bytes.
func (u *upload) sameObject(ctx context.Context) (bool, error) {
	found, err := u.store.find(ctx, u.path)
	switch {
	case err != nil || found == nil:
		return false, err
	case found.UserMetadata[sumKey] != u.sum:
		return false, exists(u.path)
	}
	stored := sha256.New() // the metadata proves nothing: any client may have written it
	d := &download{store: u.store, path: u.path, to: stored, limit: u.size}
	if err := d.run(ctx); err != nil && !errors.Is(err, ErrTooLarge) {
		return false, err
	}
	if hex.EncodeToString(stored.Sum(nil)) != u.sum {
		return false, exists(u.path)
	}
	return true, nil
}

// send uploads the file, and cleans up after a failure.
func (u *upload) send(ctx context.Context) error {
	info, complete, err := u.upload(ctx)
	if err == nil {
		return u.confirm(ctx, info)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.store.cleanup)
	defer cancel()
	if u.id != "" {
		// A lifecycle rule removes remaining parts.
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
	return u.resolve(ctx, err) // reads the whole object, if it exists
}

// resolve determines the fate of an object after its creating request failed with err.
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
	return fmt.Errorf("%w: %v", ErrUncertain, explain(u.path, err)) // %v: the error may be an interruption
}

// upload sends the file. complete reports whether the creating request was sent.
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
	// The library's PutObject would not send the header with this request.
	options = minio.PutObjectOptions{}
	options.SetMatchETagExcept("*")
	info, err = core.CompleteMultipartUpload(last, u.at.Bucket, u.at.Key, u.id, parts, options)
	return info, true, err
}

// parts uploads the parts, a few concurrently.
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

// sums returns the checksums of a range for a request: the server compares both, and a bucket with
// object lock requires the MD5.
func (u *upload) sums(from, size int64) (md5Base64, sha256Hex string, err error) {
	m, s := md5.New(), sha256.New()
	_, err = io.Copy(io.MultiWriter(m, s), u.part(from, size))
	return base64.StdEncoding.EncodeToString(m.Sum(nil)), hex.EncodeToString(s.Sum(nil)), err
}

// confirm compares the stored object with the file.
func (u *upload) confirm(ctx context.Context, made minio.UploadInfo) error {
	var options minio.StatObjectOptions
	options.VersionID = made.VersionID
	options.Set(checksumMode, "ENABLED")
	info, err := u.store.core.StatObject(ctx, u.at.Bucket, u.at.Key, options)
	switch {
	case minio.ToErrorResponse(err).StatusCode == http.StatusNotFound:
		err = errors.New("it was uploaded, and is not there any more")
	case err != nil:
		// %v: the error may be an interruption
		err = fmt.Errorf("it was uploaded, and cannot be looked at: %v", explain(u.path, err))
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
