package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a small S3 server. Tests change its answers with the hook.
type fake struct {
	mu      sync.Mutex
	objects map[string]*stored                                // by "/BUCKET/KEY"
	uploads map[string]map[int][]byte                         // parts, by upload ID
	sums    map[string]string                                 // of uploads
	log     []string                                          // "METHOD path?query" of requests
	headers []http.Header                                     // of requests
	hook    func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered
	ignore  bool                                              // ignore If-None-Match
}

type stored struct {
	content []byte
	sum     string            // metadata of Put
	header  map[string]string // additional answer headers
}

// serve starts the server and sets the environment.
func (f *fake) serve(t *testing.T) *Store {
	if f.objects == nil {
		f.objects = map[string]*stored{}
	}
	f.uploads, f.sums = map[string]map[int][]byte{}, map[string]string{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	environment(t, map[string]string{"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": "id",
		"AWS_SECRET_ACCESS_KEY": "hidden-secret"})
	s, err := Open()
	require.NoError(t, err)
	return s
}

// environment sets all environment variables read by Open.
func environment(t *testing.T, set map[string]string) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for name, value := range set {
		t.Setenv(name, value)
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	f.log = append(f.log, r.Method+" "+r.URL.RequestURI())
	f.headers = append(f.headers, r.Header)
	f.mu.Unlock()
	if f.hook != nil && f.hook(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Has("list-type"):
		f.list(w, r)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		f.get(w, r)
	case query.Has("uploads"):
		id := fmt.Sprint("upload-", len(f.uploads))
		f.uploads[id], f.sums[id] = map[int][]byte{}, r.Header.Get("X-Amz-Meta-"+sumKey)
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case query.Has("partNumber"):
		if f.uploads[query.Get("uploadId")] == nil {
			refuse(w, http.StatusNotFound, "NoSuchUpload")
			return
		}
		n, _ := strconv.Atoi(query.Get("partNumber"))
		f.uploads[query.Get("uploadId")][n] = body
		w.Header().Set("ETag", etag(body))
	case r.Method == http.MethodDelete:
		delete(f.uploads, query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	default:
		f.make(w, r, body)
	}
}

// make answers the two requests that create an object.
func (f *fake) make(w http.ResponseWriter, r *http.Request, content []byte) {
	path, sum, id := r.URL.Path, r.Header.Get("X-Amz-Meta-"+sumKey), r.URL.Query().Get("uploadId")
	if id != "" {
		parts, open := f.uploads[id]
		if !open {
			refuse(w, http.StatusNotFound, "NoSuchUpload")
			return
		}
		content, sum = nil, f.sums[id]
		for _, n := range slices.Sorted(maps.Keys(parts)) {
			content = append(content, parts[n]...)
		}
	}
	if f.objects[path] != nil && r.Header.Get("If-None-Match") == "*" && !f.ignore {
		refuse(w, http.StatusPreconditionFailed, preconditionFailed)
		return
	}
	f.objects[path] = &stored{content: content, sum: sum}
	delete(f.uploads, id)
	w.Header().Set("ETag", etag(content))
	if id != "" {
		fmt.Fprintf(w,
			"<CompleteMultipartUploadResult><Bucket>bkt</Bucket><ETag>%s</ETag></CompleteMultipartUploadResult>",
			etag(content))
	}
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	o := f.objects[r.URL.Path]
	if o == nil {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", etag(o.content))
	if o.sum != "" {
		w.Header().Set("X-Amz-Meta-"+sumKey, o.sum)
	}
	for name, value := range o.header {
		w.Header().Set(name, value)
	}
	if len(o.content) == 0 && r.Header.Get("Range") != "" {
		refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(o.content))
}

// list answers with pages of two objects.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	prefix := r.URL.Path + r.URL.Query().Get("prefix")
	after := r.URL.Query().Get("continuation-token")
	fmt.Fprint(w, "<ListBucketResult>")
	n := 0
	for _, path := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(path, prefix) || path <= after {
			continue
		}
		if n++; n > 2 {
			fmt.Fprintf(w, "<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", after)
			break
		}
		after = path
		fmt.Fprintf(w,
			"<Contents><Key>%s</Key><Size>%d</Size><ETag>&quot;e&quot;</ETag><StorageClass>STANDARD</StorageClass>"+
				"<LastModified>2026-11-20T20:50:00Z</LastModified></Contents>", strings.TrimPrefix(path, r.URL.Path),
			len(f.objects[path].content))
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

func etag(content []byte) string {
	sum := md5.Sum(content)
	return strconv.Quote(hex.EncodeToString(sum[:]))
}

// refuse answers with an S3 error.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said by the server</Message></Error>", code)
}

// asked counts logged requests with a prefix.
func (f *fake) asked(begin string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.log {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

// file returns a file with the content.
func file(t *testing.T, content []byte) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(content)
	require.NoError(t, err)
	return f
}

// contextUntil returns a context that is canceled once done returns true.
func contextUntil(t *testing.T, done func() bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil && !done() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	return ctx, cancel
}
