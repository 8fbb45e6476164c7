package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// within returns a context with a time limit for calls that could hang.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// An upload ends if the server stops reading.
func TestUploadStalls(t *testing.T) {
	f := &fake{}
	f.serve(t)
	tests := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			<-tests
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer server.Close()
	defer close(tests)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	s, err := Open()
	require.NoError(t, err)
	s.transport.idle, s.part = 50*time.Millisecond, 64<<20
	err = s.Put(within(t, 30*time.Second), "s3://bkt/k", file(t, make([]byte, 32<<20)))
	require.ErrorContains(t, err, "the server took and sent nothing for 50ms")
}

// The client limits the length of answers other than objects.
func TestLongAnswers(t *testing.T) {
	const most = 64 << 20
	for name, status := range map[string]int{"list": http.StatusOK, "error": http.StatusBadRequest} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			f := &fake{hook: func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(status)
				_, _ = w.Write([]byte("<ListBucketResult>"))
				for chunk := bytes.Repeat([]byte(" "), 1<<20); sent.Load() < most; {
					if _, err := w.Write(chunk); err != nil {
						break
					}
					sent.Add(1 << 20)
				}
				return true
			}}
			var last error
			for _, err := range f.serve(t).List(within(t, 30*time.Second), "s3://bkt/a") {
				last = err
			}
			require.Error(t, last)
			require.Less(t, sent.Load(), int64(most))
		})
	}
}

// A stalled answer ends.
func TestAnswerStalls(t *testing.T) {
	f := &fake{hook: func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("<ListBucketResult>" + strings.Repeat(" ", 1000)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}}
	s := f.serve(t)
	s.transport.idle = 50 * time.Millisecond
	for _, err := range s.List(within(t, 30*time.Second), "s3://bkt/a") {
		require.ErrorContains(t, err, "the server took and sent nothing for 50ms")
	}
}

// A list of empty pages ends, immediately if a page follows itself; a few empty pages among others
// are accepted.
func TestEmptyPages(t *testing.T) {
	for name, most := range map[string]int{"some": mostEmpty - 1, "endless": 1 << 30, "a circle": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			f := &fake{objects: map[string]*stored{"/bkt/a": {}}}
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if asked++; asked > most {
					return false
				}
				token := "/bkt/"
				if name != "a circle" {
					token += strings.Repeat("-", 1+asked%3)
				}
				fmt.Fprintf(w,
					"<ListBucketResult><IsTruncated>true</IsTruncated>"+
						"<NextContinuationToken>%s</NextContinuationToken></ListBucketResult>", token)
				return true
			}
			var last error
			n := 0
			for _, err := range f.serve(t).List(within(t, 10*time.Second), "s3://bkt/") {
				if last = err; err == nil {
					n++
				}
			}
			if name == "some" {
				require.NoError(t, last)
				require.Equal(t, 1, n)
				return
			}
			if name == "a circle" {
				require.EqualError(t, last, "s3://bkt/: the server lists a page without an object, and names the "+
					"same page as the next")
				require.Equal(t, 2, asked)
				return
			}
			require.EqualError(t, last, "s3://bkt/: the server lists 100 pages without an object, one after the "+
				"other, and says that more follow")
			require.Equal(t, mostEmpty, asked)
		})
	}
}

// A download of single bytes ends although the server never stalls; a slow download continues.
func TestSlowDownload(t *testing.T) {
	for name, chunk := range map[string]int{"a byte": 1, "slow": leastRate} {
		t.Run(name, func(t *testing.T) {
			content := bytes.Repeat([]byte("x"), 20*chunk)
			f := &fake{objects: map[string]*stored{}}
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if chunk == 1 {
					content = bytes.Repeat([]byte("x"), 10_000)
				}
				w.Header().Set("ETag", etag(content))
				w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
				if have := r.Header.Get("Range"); have != "" {
					from, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(have, "bytes="), "-"))
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
					w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
					w.WriteHeader(http.StatusPartialContent)
				} else {
					w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				}
				for r.Context().Err() == nil {
					if _, err := w.Write(content[:chunk]); err != nil {
						break
					}
					w.(http.Flusher).Flush()
					time.Sleep(10 * time.Millisecond)
				}
				return true
			}
			s := f.serve(t)
			s.transport.idle = 100 * time.Millisecond
			err := s.Fetch(within(t, time.Minute), "s3://bkt/k", file(t, nil), 1<<30)
			if chunk == 1 {
				require.ErrorIs(t, err, ErrSlow)
				require.ErrorContains(t, err, fmt.Sprintf("after %d broken connections: the server is too "+
					"slow: it sent", f.asked("GET")))
				require.LessOrEqual(t, f.asked("GET"), 8)
				return
			}
			require.NoError(t, err)
		})
	}
}
