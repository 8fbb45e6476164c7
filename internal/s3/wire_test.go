package s3

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// within is a context for what would not end.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// A server that takes no more of an upload ends it.
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
	s.wire.idle, s.part = 50*time.Millisecond, 64<<20
	err = s.Put(within(t, 30*time.Second), "s3://bkt/k", file(t, make([]byte, 32<<20)))
	require.ErrorContains(t, err, "the server took and sent nothing for 50ms")
}

// An answer that is no object has an end, or the client gives it one.
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

// An answer whose end does not come ends too.
func TestAnswerStalls(t *testing.T) {
	f := &fake{hook: func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("<ListBucketResult>" + strings.Repeat(" ", 1000)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}}
	s := f.serve(t)
	s.wire.idle = 50 * time.Millisecond
	for _, err := range s.List(within(t, 30*time.Second), "s3://bkt/a") {
		require.ErrorContains(t, err, "the server took and sent nothing for 50ms")
	}
}
