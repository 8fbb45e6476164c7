package conversion

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/encoding"
)

const (
	group = "demo.example.com"
	v1    = group + "/v1"
	v2    = group + "/v2"
)

// widgets has v1 (stored) and v2, both with every field preserved, and a webhook.
func widgets(config apiextensionsv1.WebhookClientConfig, reviews ...string) *apiextensionsv1.CustomResourceDefinition {
	if len(reviews) == 0 {
		reviews = []string{"v1"}
	}
	any := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: ptr.To(true)}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: any},
				{Name: "v2", Served: true, Schema: any},
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: reviews},
			},
		},
	}
}

// object decodes a Widget at v1; more is JSON for the end of the object, such as `,"spec":{}`.
func object(t testing.TB, name, more string) map[string]any {
	t.Helper()
	obj, _, err := encoding.DecodeObject(fmt.Appendf(
		nil, `{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{
		"name":%q,"namespace":"default","uid":"uid-%s","generation":3,"finalizers":["demo/keep"],
		"labels":{"old":"label"},"annotations":{"old":"note"}},
		"spec":{"size":9007199254740993,"ratio":1.5,"list":[1,2.25,null,"x",{"deep":true}]}%s}`, name, name, more))
	require.NoError(t, err)
	return obj
}

func objects(t testing.TB, n int) []map[string]any {
	out := make([]map[string]any, n)
	for i := range out {
		out[i] = object(t, fmt.Sprintf("w%d", i), "")
	}
	return out
}

// want returns the correct conversion of an object: spec.size is renamed spec.replicas.
func want(obj map[string]any) map[string]any {
	data, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	if err != nil {
		panic(err)
	}
	out, _, err := encoding.DecodeObject([]byte(strings.Replace(string(data), `"size":`, `"replicas":`, 1)))
	if err != nil {
		panic(err)
	}
	out["apiVersion"] = v2
	return out
}

// reviewIn is the request of a ConversionReview.
type reviewIn struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	} `json:"request"`
}

type m = map[string]any

// convertOne converts as the widgets' operator would.
func convertOne(obj m, to string) m {
	obj["apiVersion"] = to
	if spec, ok := obj["spec"].(m); ok && spec["size"] != nil {
		spec["replicas"] = spec["size"]
		delete(spec, "size")
	}
	return obj
}

func answerOf(in reviewIn, objs []any) m {
	return m{"apiVersion": in.APIVersion, "kind": in.Kind,
		"response": m{"uid": in.Request.UID, "convertedObjects": objs, "result": m{"status": "Success"}}}
}

// good answers correctly; lie, when set, may change each converted object (nil omits the object).
func good(in reviewIn, lie func(m) any) m {
	objs := []any{}
	for _, obj := range in.Request.Objects {
		out := any(convertOne(obj, in.Request.DesiredAPIVersion))
		if lie != nil {
			out = lie(out.(m))
		}
		if out != nil {
			objs = append(objs, out)
		}
	}
	return answerOf(in, objs)
}

// readReview keeps numbers as sent.
func readReview(r io.Reader) (in reviewIn, err error) {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	return in, decoder.Decode(&in)
}

// reviewer serves ConversionReviews.
func reviewer(answer func(reviewIn) m) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := readReview(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer(in))
	}
}

// server is an HTTPS server that counts requests.
type server struct {
	*httptest.Server
	ca    []byte // PEM
	calls atomic.Int64
}

// serve starts a server with a certificate for 127.0.0.1 and names.
func serve(t testing.TB, handler http.Handler, names ...string) *server {
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		handler.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	if len(names) > 0 {
		chain, key := selfSigned(t, names...)
		pair, err := tls.X509KeyPair(chain, key)
		require.NoError(t, err)
		s.TLS.Certificates, s.ca = []tls.Certificate{pair}, chain
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	if t.Cleanup(s.Close); s.ca == nil {
		s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	return s
}

// selfSigned returns a certificate for names and 127.0.0.1, with its CA certificate, and its key,
// in PEM.
func selfSigned(t testing.TB, names ...string) (chain, key []byte) {
	chain, key, err := cert.GenerateSelfSignedCertKey(names[0], []net.IP{net.IPv4(127, 0, 0, 1)}, names[1:])
	require.NoError(t, err)
	return chain, key
}

// convert converts objs to v2 through the server.
func (s *server) convert(t testing.TB, timeout time.Duration, objs ...map[string]any) ([]Converted, error) {
	t.Helper()
	c, err := Webhook(WebhookOptions{URL: s.URL, CA: s.ca, Timeout: timeout})
	require.NoError(t, err)
	return c.Convert(t.Context(), widgets(apiextensionsv1.WebhookClientConfig{}), "v2", objs)
}
