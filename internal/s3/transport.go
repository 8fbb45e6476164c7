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
	checksumMode = "X-Amz-Checksum-Mode" // a header of requests for the content of an object, and of no others
	mostAnswer   = 16 << 20              // bytes of an answer that is no object; a page of a list has 4 MB
)

// unrefusedKey is the key of a *bool in the context of a request that makes an object. It is set
// where a try succeeds, fails in the server, or has no answer: behind a proxy that gives up, the
// server may go on.
type unrefusedKey struct{}

const (
	leastRate = 64 << 10 // bytes that a server sends while it is waited for as long as a transport is idle at most
	mostEmpty = 100      // pages of a list without an object, one after the other
)

// pages is what is known of the pages of a list. The context of its requests holds it under
// pagesKey.
type pages struct {
	end   context.CancelCauseFunc // ends the list: an error of a request would be tried again
	empty int                     // how many without an object came one after the other
	token string                  // that asked for the last one
}

type pagesKey struct{}

// next ends the list where the server leads in circles.
func (p *pages) next(token string) {
	switch {
	case p.empty > 0 && token == p.token:
		p.end(errors.New("the server lists a page without an object, and names the same page as the next"))
	case p.empty >= mostEmpty:
		p.end(fmt.Errorf("the server lists %d pages without an object, one after the other, and says that more follow",
			mostEmpty))
	}
}

// boundedTransport ends requests whose server stands still, and answers that are too long.
type boundedTransport struct {
	http.RoundTripper
	idle time.Duration // how long a server may take and send nothing
}

// RoundTrip sends a request. How long a server may think before it answers is up to the transport
// below.
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

// readPage reads a page of a list, and counts it where it has no object. The library takes any
// other XML, such as a page that asks for a password, for an empty list.
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

// limits are those of one request.
type limits struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	idle    time.Duration
	stalled error // what the timer ends the request with
}

// reason is err, or why it is there.
func (l *limits) reason(err error) error {
	if context.Cause(l.ctx) == l.stalled {
		return l.stalled
	}
	return err
}

// request is the body of a request: after each read the server has some time to take what was read.
type request struct {
	io.ReadCloser
	*limits
}

// Read reads.
func (r *request) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if r.timer.Reset(r.idle); err != nil {
		r.timer.Stop()
	}
	return n, err
}

// response is the body of an answer: during each read the server has some time to send, and some
// bytes have to come in it.
type response struct {
	io.Reader
	body io.Closer
	*limits
	waited time.Duration // for the server
	came   int           // bytes, meanwhile
}

// Read reads.
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
