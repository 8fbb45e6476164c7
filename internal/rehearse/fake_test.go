package rehearse

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// fake is an API server with a definition of widgets, and objects of these names. It ends the
// connection of requests for the one named "panics", and does not find the one named "gone".
func fake(t *testing.T, names ...string) *rest.Config {
	definition := crd("widgets", "v1*", `["v1"]`, plain)
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"namespace":"a","name":%q}}`, name))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
			for _, value := range definition {
				fmt.Fprintf(w, `{"kind":"List","items":[%s]}`, value)
			}
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets"):
			fmt.Fprintf(w, `{"kind":"List","items":[%s]}`, strings.Join(items, ","))
		case strings.HasSuffix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"refused","reason":"NotFound","code":404,"message":"not found"}`)
		case strings.HasSuffix(r.URL.Path, "/panics"):
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestUnanswered: an object that a server panics over does not end the run; a server that is gone
// does.
func TestUnanswered(t *testing.T) {
	config := fake(t, "fine", "panics")
	r, err := tryAll(t.Context(), config, tryOptions{})
	require.NoError(t, err)
	const why = " at v1: Internal error occurred: the API server ended the connection without an answer, or gave none in time"
	require.Equal(t, []string{
		"rehearse-apply widgets.demo.example.com a/panics: apply" + why, "rehearse-update widgets.demo.example.com a/panics: update" + why}, r.lines())
	config.Host = "http://127.0.0.1:1"
	_, err = tryAll(t.Context(), config, tryOptions{})
	require.ErrorContains(t, err, "the API server does not answer: /apis/apiextensions.k8s.io/v1/customresourcedefinitions")
}

// TestNotFound: an object that something deletes after it was listed is no failure.
func TestNotFound(t *testing.T) {
	r, err := tryAll(t.Context(), fake(t, "gone", "fine"), tryOptions{})
	require.NoError(t, err)
	require.Empty(t, r.lines())
	require.Equal(t, 1, r.kind(t, "widgets").Tried)
}

// TestUnnamable: a name that would lead to another path is refused.
func TestUnnamable(t *testing.T) {
	r, err := tryAll(t.Context(), fake(t, "..", "a/b"), tryOptions{})
	require.NoError(t, err)
	require.Len(t, r.lines(), 4)
	require.Equal(t, "rehearse-apply widgets.demo.example.com a/..: apply at v1: no request can name it: it may not be '..'", r.lines()[0])
}
