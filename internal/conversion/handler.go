package conversion

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refuse returns a Converter that refuses every conversion with reason.
func Refuse(reason string) *Converter {
	at := func(*apiextensionsv1.CustomResourceDefinition) (endpoint, error) {
		return endpoint{url: "https://nobody.invalid/", send: func(*http.Request, int64) (answer, error) {
			return answer{}, failed(refused, "%s", reason)
		}}, nil
	}
	return &Converter{name: "nobody", at: at}
}

// Handler returns a conversion webhook for a CRD. The handler forwards each ConversionReview to the
// converter and returns the answer, unchecked. Without an answer, the handler returns a failure
// with the reason. Unlike the Converter, the handler is safe for concurrent use.
func (c *Converter) Handler(crd *apiextensionsv1.CustomResourceDefinition) (http.Handler, error) {
	end, err := c.at(crd)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		wire := wire{ctx: req.Context(), timeout: cmp.Or(c.timeout, defaultTimeout), send: end.send}
		asked, err := http.NewRequestWithContext(req.Context(), http.MethodPost, end.url, req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		asked.Header = req.Header.Clone()
		resp, err := wire.RoundTrip(asked)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			_, _ = w.Write(refusal(wire.request, err))
			return
		}
		if contentType := resp.Header.Get("Content-Type"); contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = io.Copy(w, resp.Body) // the API server is the only reader; an error needs no report
	}), nil
}

// refusal returns the answer to a request that the converter did not answer.
func refusal(request []byte, err error) []byte {
	var asked review
	if err := json.Unmarshal(request, &asked); err != nil || asked.Request == nil {
		return []byte("{}") // no API server accepts this answer
	}
	body, _ := json.Marshal(map[string]any{ // strings only: there is no error
		"apiVersion": asked.APIVersion, "kind": asked.Kind,
		"response": map[string]any{
			"uid": asked.Request.UID, "convertedObjects": []any{},
			"result": metav1.Status{Status: metav1.StatusFailure, Message: err.Error()},
		},
	})
	return body
}
