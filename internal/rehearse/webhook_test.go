package rehearse

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn answers each conversion with a message.
func standIn(t *testing.T, message string) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,"result":{"status":"refused","message":%q}}}`,
			review.Request.UID, message)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestNotChecked: a conversion that is not checked is no failure, and what needs none is tried.
func TestNotChecked(t *testing.T) {
	for message, unchecked := range map[string]bool{"not asked: it is elsewhere": true, "it is broken": false} {
		server := standIn(t, message)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		webhook := fmt.Sprintf(`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}},"names"`,
			server.URL, base64.StdEncoding.EncodeToString(ca))
		records := crd("hookeds", "v1* v2", `["v1","v2"]`, strict)
		for key, value := range records {
			records[key] = strings.Replace(value, `"names"`, webhook, 1)
		}
		w := newWorld(t, merge(records, object("hookeds", "v1", "new", "", `{"root":"no"}`), object("hookeds", "v2", "old", "", `{}`)))
		o := w.options()
		o.StandIn = "not asked: "
		r := w.run(t, o)
		kind := r.kind(t, "hookeds")
		require.Equal(t, []int{1, 1, 1}, []int{kind.Tried, r.Counts[codeUpdate], r.Counts[codeApply]})
		if unchecked {
			require.Contains(t, kind.NotChecked, "failed: not asked: it is elsewhere")
			require.Zero(t, r.Counts[codeList])
		} else {
			require.Empty(t, kind.NotChecked)
			require.Equal(t, 2, r.Counts[codeList])
			require.Contains(t, r.lines()[2], "conversion webhook for demo.example.com/v")
		}
	}
}
