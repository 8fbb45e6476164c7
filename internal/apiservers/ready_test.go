package apiservers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/rest"
)

// TestFailingChecks: of an answer of /readyz only the failing checks are named.
func TestFailingChecks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "[+]ping ok\n[-]informer-sync failed: reason withheld\n[-]x failed\nreadyz check failed",
			http.StatusInternalServerError)
	}))
	defer server.Close()
	client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	w := waiting{client: client}
	require.EqualError(t, w.ready(t.Context()), "informer-sync failed: reason withheld; x failed")
}
