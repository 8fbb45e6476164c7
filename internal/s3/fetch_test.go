package s3

import (
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"
)

// some is content for more than one read.
var some = bytes.Repeat([]byte("0123456789abcdef"), 64<<10)

// fetch copies s3://bkt/k and returns the received bytes.
func fetch(t *testing.T, s *Store, path string) ([]byte, error) {
	to := file(t, nil)
	err := s.Fetch(t.Context(), path, to, 16<<20)
	text, readErr := os.ReadFile(to.Name())
	require.NoError(t, readErr)
	return text, err
}

// cut answers with only the first bytes of an object, like a broken connection.
func cut(w http.ResponseWriter, o *stored, bytes int) {
	w.Header().Set("ETag", etag(o.content))
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.Header().Set("Content-Length", strconv.Itoa(len(o.content)))
	_, _ = w.Write(o.content[:bytes])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestFetch(t *testing.T) {
	f := &fake{objects: map[string]*stored{"/bkt/dir/k?x.db": {content: some}}}
	got, err := fetch(t, f.serve(t), "s3://bkt/dir/k?x.db")
	require.NoError(t, err)
	require.Equal(t, some, got)
}

// A broken connection is resumed at the next byte, with the ETag and version of the first answer.
func TestFetchResumes(t *testing.T) {
	o := &stored{content: some, header: map[string]string{"x-amz-version-id": "v1"}}
	f := &fake{objects: map[string]*stored{"/bkt/k": o}}
	breaks := 0
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if breaks++; breaks > 1 {
			require.Equal(t, "v1", r.URL.Query().Get("versionId"))
			require.Equal(t, etag(some), r.Header.Get("If-Match"))
			require.Equal(t, "bytes=300000-", r.Header.Get("Range"))
			return false
		}
		w.Header().Set("x-amz-version-id", "v1")
		cut(w, o, 300000)
		return true
	}
	got, err := fetch(t, f.serve(t), "s3://bkt/k")
	require.NoError(t, err)
	require.Equal(t, some, got)
}

// An object replaced between two requests is an error, even if the server ignores If-Match.
func TestFetchReplaced(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		o := &stored{content: some}
		f := &fake{objects: map[string]*stored{"/bkt/k": o}}
		first := true
		f.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if first {
				first = false
				f.objects["/bkt/k"] = &stored{content: bytes.ToUpper(some)}
				cut(w, o, 300000)
			}
			if ignores {
				r.Header.Del("If-Match")
			}
			return false
		}
		_, err := fetch(t, f.serve(t), "s3://bkt/k")
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, "s3://bkt/k: the object did not arrive as it is stored: it was "+
			"replaced meanwhile")
	}
}

// An incomplete object is always an error.
func TestFetchNeverShort(t *testing.T) {
	o := &stored{content: some}
	for name, tc := range map[string]struct {
		hook func(w http.ResponseWriter, r *http.Request) bool
		want string
	}{
		"always cut": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") != "" {
				panic(http.ErrAbortHandler)
			}
			cut(w, o, 10)
			return true
		}, "closed the connection"},
		"no range": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") == "" {
				cut(w, o, 10)
			}
			r.Header.Del("Range")
			return false
		}, "the server does not resume a download"},
		"no length": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = w.Write(o.content)
			w.(http.Flusher).Flush()
			return true
		}, "does not tell its length"},
		"stalls": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = w.Write(o.content[:10])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}, "does not resume"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{objects: map[string]*stored{"/bkt/k": o}, hook: tc.hook}
			s := f.serve(t)
			s.transport.idle = 50 * time.Millisecond
			_, err := fetch(t, s, "s3://bkt/k")
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Received bytes are compared with the checksum offered by the server.
func TestFetchCompares(t *testing.T) {
	right := minio.ChecksumCRC64NVME.EncodeToString(some)
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 8))
	for name, tc := range map[string]struct {
		header map[string]string
		broken bool
	}{
		"crc64nvme": {map[string]string{"x-amz-checksum-crc64nvme": right,
			"x-amz-checksum-type": "FULL_OBJECT"}, false},
		"crc64nvme wrong": {map[string]string{"x-amz-checksum-crc64nvme": wrong,
			"x-amz-checksum-type": "FULL_OBJECT"}, true},
		"of the parts": {map[string]string{"x-amz-checksum-sha256": wrong + "-3", "ETag": `"x-3"`},
			false},
		"of the parts, says type": {map[string]string{"x-amz-checksum-crc32c": wrong,
			"x-amz-checksum-type": "COMPOSITE", "ETag": `"x-3"`}, false},
		"etag wrong": {map[string]string{"ETag": `"00000000000000000000000000000000"`}, true},
		"etag of encrypted object": {map[string]string{"ETag": `"00000000000000000000000000000000"`,
			"x-amz-server-side-encryption": "aws:kms"}, false},
		"etag that is no md5 at all": {map[string]string{"ETag": `"abc"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{objects: map[string]*stored{"/bkt/k": {content: some, header: tc.header}}}
			_, err := fetch(t, f.serve(t), "s3://bkt/k")
			if tc.broken {
				require.ErrorIs(t, err, ErrBroken)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// The error names a server that does not speak S3 as the cause.
func TestFetchPage(t *testing.T) {
	f := &fake{hook: func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.WriteString(w,
			"<html>")
		return true
	}}
	err := f.serve(t).Fetch(t.Context(), "s3://bkt/k", file(t, nil), 100)
	require.EqualError(t, err, "s3://bkt/k: the server does not answer as S3 does")
}

// Each error has the object and advice, and no credential.
func TestFetchErrors(t *testing.T) {
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			refuse(w, status, code)
			return true
		}
	}
	for name, tc := range map[string]struct {
		hook       func(w http.ResponseWriter, r *http.Request) bool
		is         error
		want, next string
	}{
		"missing": {nil, fs.ErrNotExist, "no such object or version", "check the key"},
		"bucket":  {answer(404, "NoSuchBucket"), fs.ErrNotExist, "no such bucket", "AWS_ENDPOINT_URL"},
		"denied":  {answer(403, "AccessDenied"), fs.ErrPermission, "access denied", "least policy"},
		"id":      {answer(403, "InvalidAccessKeyId"), fs.ErrPermission, "InvalidAccessKeyId", "AWS_PROFILE"},
		"id elsewhere": {answer(http.StatusForbidden, "XAdminUserNotFound"), fs.ErrPermission,
			"XAdminUserNotFound", "credentials"},
		"expired": {answer(http.StatusBadRequest, "ExpiredToken"), fs.ErrPermission,
			"ExpiredToken", "credentials"},
		"clock":  {answer(403, "RequestTimeTooSkewed"), nil, "RequestTimeTooSkewed", "clock"},
		"region": {answer(301, "PermanentRedirect"), nil, "PermanentRedirect", "AWS_REGION"},
		"long region": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("x-amz-bucket-region", strings.Repeat("r", 1000))
			refuse(w, http.StatusMovedPermanently, "PermanentRedirect")
			return true
		}, nil, "PermanentRedirect", "AWS_REGION"},
		"archived": {answer(403, "InvalidObjectState"), nil, "archived", "restore-object"},
		"page": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, strings.Repeat("x", 1e6), http.StatusTeapot)
			return true
		}, nil, "xxx", ""},
		"redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return true
		}, nil, "302", ""},
		"empty": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "0")
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			return true
		}, nil, "0 bytes", ""},
		"too large": {func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "99999999")
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			return true
		}, ErrTooLarge, "99999999 bytes", ""},
		"closed": {func(w http.ResponseWriter, r *http.Request) bool { panic(http.ErrAbortHandler) }, nil,
			"closed the connection", "AWS_ENDPOINT_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&fake{hook: tc.hook}).serve(t)
			_, err := fetch(t, s, "s3://bkt/k?versionId=v")
			var about *Error
			require.ErrorAs(t, err, &about)
			require.Contains(t, err.Error(), "s3://bkt/k?versionId=v: ")
			require.Contains(t, err.Error(), tc.want)
			require.Contains(t, about.Next, tc.next)
			require.Less(t, len(err.Error()+about.Next), 500)
			require.NotContains(t, err.Error()+about.Next, "hidden-secret")
			require.NotContains(t, err.Error(), "http://")
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
		})
	}
}

// An interruption ends a download.
func TestFetchInterrupted(t *testing.T) {
	f := &fake{}
	var asked atomic.Bool
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		asked.Store(true)
		<-r.Context().Done()
		return true
	}
	s := f.serve(t)
	ctx, cancel := contextUntil(t, asked.Load)
	defer cancel()
	require.ErrorIs(t, s.Fetch(ctx, "s3://bkt/k", file(t, nil), 1), ctx.Err())
}

// A full disk is not treated as a broken connection.
func TestFetchDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	f := &fake{objects: map[string]*stored{"/bkt/k": {content: some}}}
	require.ErrorContains(t, f.serve(t).Fetch(t.Context(), "s3://bkt/k", full, 16<<20), "no space")
	require.Equal(t, 1, f.asked("GET"))
}
