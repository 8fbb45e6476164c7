package conversion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	kjson "sigs.k8s.io/json"
)

// freeAnswer is the allowed size of an answer, in bytes, besides four times the size of its
// request.
const freeAnswer = 16 << 20

// maxSaid bounds quotations of the converter's messages, in bytes.
const maxSaid = 2 << 10

// kind is the consequence of a failed call for later calls.
type kind int

const (
	broken  kind = iota + 1 // unreachable or silent: do not call again
	garbled                 // no sound answer; perhaps because of one object
	refused                 // a sound answer that converts nothing, or that a server refuses
)

// failure is a call without a result.
type failure struct {
	kind   kind
	reason string
}

func (f *failure) Error() string { return f.reason }

func failed(k kind, format string, args ...any) *failure {
	return &failure{kind: k, reason: printable(fmt.Sprintf(format, args...))}
}

// wire is the transport below the library's client, for one goroutine.
type wire struct {
	ctx     context.Context
	timeout time.Duration
	send    func(req *http.Request, limit int64) (answer, error)

	// Of the last call:
	request, body []byte
	err           error // reason for a missing body
}

func (w *wire) reset() { w.request, w.body, w.err = nil, nil, nil }

// RoundTrip sends a ConversionReview with the context of the Convert and the timeout, and reads the
// whole answer, so that waiting and reading are bounded.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.timeout)
	defer cancel()
	var err error
	if w.request, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	sent := req.WithContext(ctx)
	sent.Body = io.NopCloser(bytes.NewReader(w.request))
	got, err := w.send(sent, freeAnswer+4*int64(len(w.request)))
	switch {
	case err != nil && w.ctx.Err() != nil:
		w.err = w.ctx.Err()
	case err != nil && ctx.Err() != nil:
		w.err = failed(broken, "no whole answer within %s", w.timeout)
	default:
		w.err = err
	}
	if w.err != nil {
		return nil, w.err
	}
	w.body = got.body
	resp := &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{},
		Body:          io.NopCloser(bytes.NewReader(got.body)),
		ContentLength: int64(len(got.body)),
		Request:       req,
	}
	if got.contentType != "" {
		resp.Header.Set("Content-Type", got.contentType)
	}
	return resp, nil
}

// review holds the fields that distinguish a sound answer from a garbled answer.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID string `json:"uid"`
	} `json:"request"`
	Response *struct {
		UID              string `json:"uid"`
		ConvertedObjects []any  `json:"convertedObjects"`
	} `json:"response"`
}

// explain turns the library's error about the last call into a failure. The library's decoder
// quotes a whole object without kind; the text of the library is used only if the text cannot quote
// the answer.
func (w *wire) explain(library error) error {
	if w.err != nil {
		return w.err
	}
	if w.request == nil {
		return failed(refused, "%s", library) // refused before sending
	}
	var asked, got review
	if len(w.body) == 0 {
		return failed(garbled, "empty answer")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(w.body, &got); err != nil {
		return failed(garbled, "the answer (%d bytes) is not a ConversionReview in JSON", len(w.body))
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(w.request, &asked); err != nil { // the library added a uid
		return err
	}
	// A v1beta1 answer needs neither uid nor kind, but must not have another version.
	strict := asked.APIVersion == "apiextensions.k8s.io/v1"
	switch {
	case (strict || got.APIVersion != "" || got.Kind != "") &&
		(got.APIVersion != asked.APIVersion || got.Kind != asked.Kind):
		return failed(garbled, "the answer is %.100q %.100q, not %q %q", got.APIVersion, got.Kind,
			asked.APIVersion, asked.Kind)
	case got.Response == nil:
		return failed(garbled, "the answer is a ConversionReview without a response")
	case strict && asked.Request != nil && got.Response.UID != asked.Request.UID:
		return failed(garbled, "the answer's response.uid %.100q is not the request's %q", got.Response.UID,
			asked.Request.UID)
	}
	for i, converted := range got.Response.ConvertedObjects {
		obj, isObject := converted.(map[string]any)
		if name, _ := obj["kind"].(string); !isObject || name == "" {
			return failed(refused, "response.convertedObjects[%d] is not an object with a kind", i)
		}
	}
	return failed(refused, "%s", library)
}

var errTooLong = errors.New("too long")

// tooLong returns the failure for errTooLong: garbled, since one object may have caused the long
// answer.
func tooLong(limit int64) error { return failed(garbled, "the answer is longer than %d bytes", limit) }

// printable puts s on one line, with blanks for control characters, and cuts out a long middle.
func printable(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), func(r rune) bool {
		return !unicode.IsPrint(r) || r == ' '
	}), " ")
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid/2], "") + " [...] " + strings.ToValidUTF8(s[len(s)-maxSaid/2:], "")
	}
	return s
}
