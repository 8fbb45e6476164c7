package conversion

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestHandler checks that a Handler converts as its converter does, and gives the reason for a
// missing answer.
func TestHandler(t *testing.T) {
	there := serve(t, reviewer(func(in reviewIn) m { return good(in, nil) }))
	webhook, err := Webhook(WebhookOptions{URL: there.URL, CA: there.ca})
	require.NoError(t, err)
	gone, err := Webhook(WebhookOptions{URL: "https://127.0.0.1:1", Timeout: 5 * time.Second})
	require.NoError(t, err)
	for _, review := range []string{"v1", "v1beta1"} {
		crd := widgets(apiextensionsv1.WebhookClientConfig{}, review)
		ask := func(behind *Converter) ([]Converted, error) {
			handler, err := behind.Handler(crd)
			require.NoError(t, err)
			s := httptest.NewTLSServer(handler)
			defer s.Close()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			c, err := Webhook(WebhookOptions{URL: s.URL, CA: ca})
			require.NoError(t, err)
			return c.Convert(t.Context(), crd, "v2", objects(t, 3))
		}
		direct, err := webhook.Convert(t.Context(), crd, "v2", objects(t, 3))
		require.NoError(t, err)
		through, err := ask(webhook)
		require.NoError(t, err)
		require.Equal(t, direct, through)

		for reason, behind := range map[string]*Converter{"not today": Refuse("not today"),
			"connection refused": gone} {
			refused, err := ask(behind)
			require.NoError(t, err)
			for _, one := range refused {
				require.ErrorIs(t, one.Err, errRefused)
				require.ErrorContains(t, one.Err, reason)
			}
		}
	}
}
