package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	checksumMode = "X-Amz-Checksum-Mode" // set only for requests for object content
	mostAnswer   = 16 << 20              // maximum bytes of an answer other than an object; a list page has 4 MB
)

// unrefusedKey is the context key of a *bool for a request that creates an object. The bool is set
// if an attempt succeeds, fails in the server, or gets no answer: behind a proxy timeout, the
// server may continue.
type unrefusedKey struct{}

const (
	leastRate = 64 << 10 // minimum bytes received per maximum idle time of a transport
	mostEmpty = 100      // maximum number of consecutive list pages without an object
)

// pages is the state of a list. The context of its requests holds it under pagesKey.
type pages struct {
	end   context.CancelCauseFunc // ends the list; the library would retry after a request error
	empty int                     // consecutive pages without an object
	token string                  // token of the last request
}

type pagesKey struct{}

// next ends the list if the server repeats a page or sends too many empty pages.
func (p *pages) next(token string) {
	switch {
	case p.empty > 0 && token == p.token:
		p.end(errors.New("the server lists a page without an object, and names the same page as the next"))
	case p.empty >= mostEmpty:
		p.end(fmt.Errorf("the server lists %d pages without an object, one after the other, and says that more follow",
			mostEmpty))
	}
}

// boundedTransport ends stalled requests and oversized answers.
type boundedTransport struct {
	http.RoundTripper
	idle time.Duration // maximum time without received or sent data
}

// RoundTrip sends a request. The underlying transport limits the time until the answer begins.
func (w *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	token := query.Get("continuation-token")
	listed, _ := r.Context().Value(pagesKey{}).(*pages)
	if listed != nil {
		listed.next(token)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stalled := fmt.Errorf("the server took and sent nothing for %s", w.idle)
	l := &limits{ctx: ctx, cancel: cancel, idle: w.idle, stalled: stalled}
	l.timer = time.AfterFunc(w.idle, func() { cancel(l.stalled) })
	l.timer.Stop()
	sent := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = &request{r.Body, l}
	}
	answer, err := w.RoundTripper.RoundTrip(sent)
	l.timer.Stop()
	if made, is := r.Context().Value(unrefusedKey{}).(*bool); is && r.Method != http.MethodGet {
		*made = *made || err != nil || answer.StatusCode/100 == 2 ||
			answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented
	}
	if err != nil {
		err = l.reason(err)
		cancel(nil)
		return nil, err
	}
	body := io.Reader(answer.Body)
	if r.Header.Get(checksumMode) == "" || answer.StatusCode >= http.StatusMultipleChoices {
		body = io.LimitReader(body, mostAnswer)
	}
	answer.Body = &response{Reader: body, body: answer.Body, limits: l}
	if answer.StatusCode == http.StatusOK && query.Has("list-type") {
		return readPage(answer, listed, token)
	}
	return answer, nil
}

// readPage reads a list page, and counts it if empty. The library parses any other XML, such as a
// login page, as an empty list.
func readPage(answer *http.Response, listed *pages, token string) (*http.Response, error) {
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err == nil && !bytes.Contains(text[:min(len(text), 1024)], []byte("ListBucketResult")) {
		err = errNotS3
	}
	if err != nil {
		return nil, err
	}
	if listed != nil {
		listed.token = token
		if listed.empty++; bytes.Contains(text, []byte("<Contents>")) {
			listed.empty = 0
		}
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

// limits are the time limits of one request.
type limits struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	idle    time.Duration
	stalled error // error set by the timer
}

// reason returns the stall error if the timer ended the request, otherwise err.
func (l *limits) reason(err error) error {
	if context.Cause(l.ctx) == l.stalled {
		return l.stalled
	}
	return err
}

// request is a request body: after each read the server has a limited time to accept the data.
type request struct {
	io.ReadCloser
	*limits
}

// Read implements [io.Reader].
func (r *request) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if r.timer.Reset(r.idle); err != nil {
		r.timer.Stop()
	}
	return n, err
}

// response is an answer body: during each read the server has a limited time to send, and must send
// a minimum of bytes.
type response struct {
	io.Reader
	body io.Closer
	*limits
	waited time.Duration // time waiting for the server
	came   int           // bytes received during waited
}

// Read implements [io.Reader].
func (r *response) Read(b []byte) (int, error) {
	begin := time.Now()
	r.timer.Reset(r.idle)
	n, err := r.Reader.Read(b)
	if r.timer.Stop(); err != nil && err != io.EOF {
		err = r.reason(err)
	}
	r.waited, r.came = r.waited+time.Since(begin), r.came+n
	if r.waited < r.idle {
		return n, err
	}
	if r.came < leastRate && err == nil {
		err = fmt.Errorf("%w: it sent %d bytes in %s", ErrSlow, r.came, r.waited.Round(time.Millisecond))
	}
	r.waited, r.came = 0, 0
	return n, err
}

// Close ends the request.
func (r *response) Close() error {
	err := r.body.Close()
	r.timer.Stop()
	r.cancel(nil)
	return err
}
