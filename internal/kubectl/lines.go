package kubectl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/etcdshift/etcdshift/internal/render"
)

// lines changes answers before kubectl prints them, so that no object name forges a line of output.
// kubectl requests objects by the changed names; lines restores the real names in requests.
type lines struct {
	next  http.RoundTripper
	whole bool // leave documents unchanged
}

// begin sets the command and its output format.
func (l *lines) begin(c *cobra.Command, format string) {
	l.whole = isDocument(format) || c.Flags().Changed("raw")
}

// RoundTrip implements http.RoundTripper.
func (l *lines) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if err := unquote(request.URL); err != nil {
		return nil, err
	}
	answer, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	document := l.whole && answer.StatusCode < http.StatusBadRequest
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); media != "application/json" || document {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !isPlain(text) {
		text, err = quoteNames(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return answer, nil
}

// quoteNames returns an answer with quoted names.
func quoteNames(text []byte) ([]byte, error) {
	var content any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&content); err != nil {
		return nil, err
	}
	return json.Marshal(render.QuoteNames(content))
}

// isPlain reports whether quoteNames would surely change no name: each text is printable ASCII
// without a quotation mark. It is a fast filter: decoding takes longer than the server's work.
func isPlain(text []byte) bool {
	for i, c := range text {
		switch {
		case c == '\\':
			rest := text[i:]
			if !bytes.HasPrefix(rest, []byte(`\u003c`)) && !bytes.HasPrefix(rest, []byte(`\u003e`)) &&
				!bytes.HasPrefix(rest, []byte(`\u0026`)) { // "<", ">" and "&", as encoding/json writes them
				return false
			}
		case c < ' ' && c != '\n', c > '~':
			return false
		}
	}
	return true
}

// unquote restores the real names in the path and the field selector of a request.
func unquote(u *url.URL) (err error) {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, segment := range segments {
		name, err := url.PathUnescape(segment)
		if err != nil {
			return err
		}
		segments[i] = url.PathEscape(realName(name))
	}
	u.RawPath = strings.Join(segments, "/")
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return err
	}
	query := u.Query()
	if !query.Has("fieldSelector") {
		return nil
	}
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil // the server reports the error
	}
	selector, err = selector.Transform(func(field, value string) (string, string, error) {
		return field,
			realName(value), nil
	})
	query.Set("fieldSelector", selector.String())
	u.RawQuery = query.Encode()
	return err
}

// realName returns the original name for a result of render.Name.
func realName(name string) string {
	if strings.HasPrefix(name, `"`) {
		if name, err := strconv.Unquote(name); err == nil {
			return name
		}
	}
	return name
}
