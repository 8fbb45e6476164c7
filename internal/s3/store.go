package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Store is the server configured in the environment. It is safe for concurrent use.
type Store struct {
	core      *minio.Core
	transport *boundedTransport
	part      int64         // part size of an upload, in bytes
	cleanup   time.Duration // time limit for cleanup after an interruption
}

// Open reads the environment. It contacts no server.
func Open() (*Store, error) {
	s, err := readSettings()
	if err != nil {
		return nil, settingsError(err)
	}
	transport, err := s.transport()
	if err != nil {
		return nil, settingsError(err)
	}
	w := &boundedTransport{transport, time.Minute}
	host, options := "s3.amazonaws.com", &minio.Options{
		Creds: credentials.New(newSource()), Secure: true, Region: s.region, Transport: w, MaxRetries: 5,
	}
	if s.endpoint != nil {
		host, options.Secure = s.endpoint.Host, s.endpoint.Scheme == "https"
		options.BucketLookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(host, options)
	if err != nil {
		return nil, settingsError(err)
	}
	core.SetS3EnableDualstack(false) // as the AWS tools do
	return &Store{core: core, transport: w, part: 16 << 20, cleanup: 30 * time.Second}, nil
}

func settingsError(err error) error {
	const next = "docs/guides/object-storage.md lists the environment variables and the settings of a profile"
	return &Error{"settings of S3", err, next}
}

// Object is a list entry.
type Object struct {
	Path     string // s3://BUCKET/KEY
	Size     int64  // bytes
	ETag     string
	Modified time.Time
}

// List yields the objects below a prefix, s3://BUCKET or s3://BUCKET/PREFIX, in key order, page by
// page.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		at, err := parsePrefix(prefix)
		if err != nil {
			yield(Object{}, err)
			return
		}
		last := ""
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		ctx = context.WithValue(ctx, pagesKey{}, &pages{end: end})
		options := minio.ListObjectsOptions{Prefix: at.Key, Recursive: true, FetchOwner: new(false)}
		for o := range s.core.ListObjectsIter(ctx, at.Bucket, options) {
			if o.Err != nil && ctx.Err() != nil {
				o.Err = context.Cause(ctx)
			}
			err := explain(prefix, o.Err)
			if err == nil && last != "" && o.Key <= last { // a repeated page would never end
				err = fmt.Errorf("the server lists %.200q after %.200q: its list is not in order", o.Key, last)
				err = &Error{Path: prefix, Err: err}
			}
			if err != nil {
				yield(Object{}, err)
				return
			}
			last = o.Key
			if !yield(Object{Location{Bucket: at.Bucket, Key: o.Key}.String(), o.Size, o.ETag, o.LastModified}, nil) {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(Object{}, explain(prefix, err))
		}
	}
}

// Vacant returns nil if no object has the path. The error for an existing object wraps fs.ErrExist.
// An object written by Put returns nil: Put later compares the bytes.
func (s *Store) Vacant(ctx context.Context, path string) error {
	found, err := s.find(ctx, path)
	if err != nil || found == nil || found.UserMetadata[sumKey] != "" {
		return err
	}
	return exists(path)
}

func exists(path string) error {
	return &Error{path, fmt.Errorf("create: %w", fs.ErrExist), "an existing object is never overwritten; name another"}
}

// find returns the object at path, or nil. It reads a byte: an answer to HEAD has no body, and
// would not distinguish a missing bucket or wrong credentials from a missing object.
func (s *Store) find(ctx context.Context, path string) (*minio.ObjectInfo, error) {
	at, err := Parse(path)
	if err == nil && at.Version != "" {
		err = &Error{path, errors.New("a version cannot be written"), "leave ?versionId out"}
	}
	if err != nil {
		return nil, err
	}
	var first minio.GetObjectOptions
	first.Set("Range", "bytes=0-0")
	body, info, _, err := s.core.GetObject(ctx, at.Bucket, at.Key, first)
	switch code := minio.ToErrorResponse(err).Code; {
	case code == "NoSuchKey":
		return nil, nil
	case code == "InvalidRange", code == "InvalidObjectState": // an empty object; an archived one
		return &minio.ObjectInfo{}, nil
	case err != nil:
		return nil, explain(path, err)
	}
	return &info, body.Close()
}
