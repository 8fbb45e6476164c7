package s3

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inParts sets the part size to a quarter of the test content.
func inParts(s *Store) *Store {
	s.part = int64(len(some)) / 4
	return s
}

func TestPut(t *testing.T) {
	for name, part := range map[string]int64{"at once": 16 << 20, "in parts": int64(len(some))/4 + 1,
		"in even parts": int64(len(some)) / 4} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			s := f.serve(t)
			s.part = part
			require.NoError(t, s.Vacant(t.Context(), "s3://bkt/dir/k"))
			require.NoError(t, s.Put(t.Context(), "s3://bkt/dir/k", file(t, some)))
			require.Equal(t, some, f.objects["/bkt/dir/k"].content)
			require.Empty(t, f.uploads)
			for i, line := range f.log {
				if h := f.headers[i]; strings.HasPrefix(line, "PUT") {
					require.NotEmpty(t, h.Get("Content-Md5"), "a bucket with object lock asks for it")
					require.Len(t, h.Get("X-Amz-Content-Sha256"), 64)
				}
			}
		})
	}
}

// The creating request tells the server to keep an existing object.
func TestNeverReplaced(t *testing.T) {
	for name, store := range map[string]func(*Store) *Store{"at once": func(s *Store) *Store { return s },
		"in parts": inParts} {
		t.Run(name, func(t *testing.T) {
			other := &stored{content: []byte("another")}
			f := &fake{objects: map[string]*stored{"/bkt/old": other}}
			s := store(f.serve(t))
			require.ErrorIs(t, s.Vacant(t.Context(), "s3://bkt/old"), fs.ErrExist)
			require.ErrorIs(t, s.Put(t.Context(), "s3://bkt/old", file(t, some)), fs.ErrExist)
			require.Zero(t, f.asked("PUT"))

			// another client writes the object during the upload
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") || r.Method == http.MethodPut &&
					s.part > 1<<20 {
					require.Equal(t, "*", r.Header.Get("If-None-Match"))
					f.objects["/bkt/new"] = other
				}
				return false
			}
			require.ErrorIs(t, s.Put(t.Context(), "s3://bkt/new", file(t, some)), fs.ErrExist)
			require.Same(t, other, f.objects["/bkt/new"])
			require.Empty(t, f.uploads)
		})
	}
}

// If a server ignores the header, a second check before the parts are joined finds the object.
func TestHeaderIgnored(t *testing.T) {
	other := &stored{content: []byte("another")}
	f := &fake{ignore: true}
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("partNumber") {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.objects["/bkt/k"] = other
		}
		return false
	}
	require.ErrorIs(t, inParts(f.serve(t)).Put(t.Context(), "s3://bkt/k", file(t, some)), fs.ErrExist)
	require.Same(t, other, f.objects["/bkt/k"])
}

// An object with the same bytes comes from an earlier run and counts as written. An object with
// false metadata does not.
func TestSameBytes(t *testing.T) {
	f := &fake{}
	s := inParts(f.serve(t))
	require.NoError(t, s.Put(t.Context(), "s3://bkt/k", file(t, some)))
	made := f.objects["/bkt/k"]
	require.NoError(t, s.Vacant(t.Context(), "s3://bkt/k"))
	require.NoError(t, s.Put(t.Context(), "s3://bkt/k", file(t, some)))
	require.Same(t, made, f.objects["/bkt/k"])
	require.ErrorIs(t, s.Put(t.Context(), "s3://bkt/k", file(t, some[1:])), fs.ErrExist)

	made.content = bytes.ToUpper(some)
	require.ErrorIs(t, s.Put(t.Context(), "s3://bkt/k", file(t, some)), fs.ErrExist)
	made.content = append(bytes.Clone(some), 'x')
	require.ErrorIs(t, s.Put(t.Context(), "s3://bkt/k", file(t, some)), fs.ErrExist)
}

// After a lost answer, the created object is recognized.
func TestAnswerLost(t *testing.T) {
	for name, store := range map[string]func(*Store) *Store{"at once": func(s *Store) *Store { return s },
		"in parts": inParts} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			lost := false
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if !lost && (r.Method == http.MethodPost && r.URL.Query().Has("uploadId") ||
					r.Method == http.MethodPut && !r.URL.Query().Has("partNumber")) {
					lost = true
					var body bytes.Buffer
					_, _ = body.ReadFrom(r.Body)
					f.make(httpNowhere{}, r, body.Bytes())
					panic(http.ErrAbortHandler)
				}
				return false
			}
			s := store(f.serve(t))
			s.cleanup = time.Nanosecond // for interruptions only: comparing a large object takes longer
			require.NoError(t, s.Put(t.Context(), "s3://bkt/k", file(t, some)))
			require.Equal(t, some, f.objects["/bkt/k"].content)
		})
	}
}

// httpNowhere is a ResponseWriter whose answer never arrives.
type httpNowhere struct{}

func (httpNowhere) Header() http.Header         { return http.Header{} }
func (httpNowhere) Write(b []byte) (int, error) { return len(b), nil }
func (httpNowhere) WriteHeader(int)             {}

// After an error or an interruption no object and no part remains.
func TestAborted(t *testing.T) {
	refusing := func(status int, code, query string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodDelete && r.URL.Query().Has(query) &&
				(query == "partNumber" || r.Method == http.MethodPost) {
				refuse(w, status, code)
				return true
			}
			return false
		}
	}
	for name, tc := range map[string]struct {
		hook func(w http.ResponseWriter, r *http.Request) bool
		want string
	}{
		"part":            {refusing(403, "AccessDenied", "partNumber"), "access denied"},
		"digest":          {refusing(400, "BadDigest", "partNumber"), "BadDigest"},
		"not implemented": {refusing(501, "NotImplemented", "uploadId"), "If-None-Match is not implemented"},
		"conflict": {refusing(409, "ConditionalRequestConflict", "uploadId"),
			"the server says that the object is there or being written"},
		"completion": {refusing(400, "InvalidPart", "uploadId"), "InvalidPart"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.hook = tc.hook
			err := inParts(f.serve(t)).Put(t.Context(), "s3://bkt/k", file(t, some))
			require.ErrorContains(t, err, tc.want)
			require.NotErrorIs(t, err, ErrUncertain)
			require.Empty(t, f.objects)
			require.Empty(t, f.uploads)
		})
	}
}

func TestPutInterrupted(t *testing.T) {
	f := &fake{}
	var asked atomic.Bool
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") == "2" {
			asked.Store(true)
			<-r.Context().Done()
			return true
		}
		return false
	}
	s := inParts(f.serve(t))
	ctx, cancel := contextUntil(t, asked.Load)
	defer cancel()
	require.ErrorIs(t, s.Put(ctx, "s3://bkt/k", file(t, some)), ctx.Err())
	require.Empty(t, f.objects)
	require.Empty(t, f.uploads)
}

// A canceled upload does not read the rest of the file.
func TestPartsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed := file(t, nil)
	closed.Close()
	_, err := (&upload{file: closed, size: 3}).parts(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

// An interruption after the object may have been created returns ErrUncertain.
func TestInterruptedLate(t *testing.T) {
	for _, method := range []string{http.MethodPut, http.MethodHead} {
		t.Run(method, func(t *testing.T) {
			f := &fake{}
			var asked atomic.Bool
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != method {
					return false
				}
				asked.Store(true)
				<-r.Context().Done()
				return true
			}
			s := f.serve(t)
			ctx, cancel := contextUntil(t, asked.Load)
			defer cancel()
			err := s.Put(ctx, "s3://bkt/k", file(t, some))
			require.ErrorIs(t, err, ErrUncertain)
			require.NotErrorIs(t, err, ctx.Err())
			require.ErrorContains(t, err, "s3://bkt/k: ")
		})
	}
}

// The stored object is compared with the sent bytes.
func TestConfirmed(t *testing.T) {
	for name, header := range map[string]map[string]string{
		"etag":     {"ETag": `"other"`},
		"checksum": {"x-amz-checksum-crc32c": "AAAAAA==", "x-amz-checksum-type": "FULL_OBJECT"},
		"size":     {"Content-Length": "7"},
		"gone":     nil,
		"denied":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodHead {
					return false
				}
				w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
				w.Header().Set("ETag", etag(some))
				w.Header().Set("Content-Length", "1048576")
				for name, value := range header {
					w.Header().Set(name, value)
				}
				switch name {
				case "gone":
					w.WriteHeader(http.StatusNotFound)
				case "denied":
					w.WriteHeader(http.StatusForbidden)
				}
				return true
			}
			err := f.serve(t).Put(t.Context(), "s3://bkt/k", file(t, some))
			require.ErrorIs(t, err, ErrUncertain)
			require.ErrorContains(t, err, "s3://bkt/k: ")
		})
	}
}

// If the server stops answering at the end, the object may exist.
func TestUncertain(t *testing.T) {
	f := &fake{}
	dead := false
	f.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if dead = dead || r.Method == http.MethodPost && r.URL.Query().Has("uploadId"); dead {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	require.ErrorIs(t, inParts(f.serve(t)).Put(t.Context(), "s3://bkt/k", file(t, some)), ErrUncertain)
}

// After a proxy timeout, the server may still create the object, regardless of answers to later
// attempts, unless the upload was aborted or is unknown to the server.
func TestServerError(t *testing.T) {
	for name, tc := range map[string]struct {
		inParts   bool
		tries     []int // answers to the attempts to create the object; the last is repeated
		abort     int   // answer to the abort request; 0: the fake server's own
		uncertain bool
	}{
		"at once":                 {tries: []int{504}, uncertain: true},
		"at once, then taken":     {tries: []int{504, 409}, uncertain: true}, // perhaps by the first attempt
		"at once, then forbidden": {tries: []int{504, 403}, uncertain: true},
		"at once, then not known": {tries: []int{504, 501}, uncertain: true},
		"at once, not known":      {tries: []int{501}},
		"at once, elsewhere":      {tries: []int{301}},
		"at once, forbidden":      {tries: []int{403}},
		"aborted":                 {inParts: true, tries: []int{504}},
		"not aborted":             {inParts: true, tries: []int{504}, abort: 504, uncertain: true},
		"gone":                    {inParts: true, tries: []int{504}, abort: 404},
		"then taken, aborted":     {inParts: true, tries: []int{504, 409}},
		"then taken, not aborted": {inParts: true, tries: []int{504, 412}, abort: 504, uncertain: true},
		"taken, not aborted":      {inParts: true, tries: []int{412}, abort: 403},
		"forbidden, nor aborted":  {inParts: true, tries: []int{403}, abort: 403},
	} {
		t.Run(name, func(t *testing.T) {
			f, try := &fake{}, -1
			f.hook = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodPut && !tc.inParts, r.Method == http.MethodPost &&
					r.URL.Query().Has("uploadId"):
					try++
					w.WriteHeader(tc.tries[min(try, len(tc.tries)-1)])
				case r.Method == http.MethodDelete && tc.abort == http.StatusNotFound:
					refuse(w, tc.abort, "NoSuchUpload")
				case r.Method == http.MethodDelete && tc.abort != 0:
					w.WriteHeader(tc.abort)
				default:
					return false
				}
				return true
			}
			s := f.serve(t)
			if tc.inParts {
				s = inParts(s)
			}
			err := s.Put(t.Context(), "s3://bkt/k", file(t, some))
			require.Error(t, err)
			require.NotErrorIs(t, err, fs.ErrExist)
			require.Equal(t, tc.uncertain, errors.Is(err, ErrUncertain), "%v", err)
			require.Equal(t, tc.inParts, f.asked("DELETE") > 0)
		})
	}
}
