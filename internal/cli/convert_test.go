package cli

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// convertMain is a converter of widgets for --conversion-exec. An argument selects a fault:
// "rename" changes names, "refuse" answers with a Failure, "crash" gives no answer.
func convertMain() {
	how := ""
	if len(os.Args) > 1 {
		how = os.Args[1]
	}
	if how == "crash" {
		fmt.Fprintln(os.Stderr, "cannot convert today")
		os.Exit(1)
	}
	if err := convert(os.Stdin, os.Stdout, how); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// convert answers one ConversionReview: the field text of v1beta1 is oldOnly in v1alpha1.
func convert(r io.Reader, w io.Writer, how string) error {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r).Decode(&review); err != nil {
		return err
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID,
		Result: metav1.Status{Status: metav1.StatusSuccess}}
	if how == "refuse" {
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "no such thing"}
	}
	for _, in := range review.Request.Objects {
		var obj map[string]any
		if err := json.Unmarshal(in.Raw, &obj); err != nil {
			return err
		}
		obj["apiVersion"] = review.Request.DesiredAPIVersion
		if spec, ok := obj["spec"].(map[string]any); ok && spec["oldOnly"] != nil {
			spec["text"] = spec["oldOnly"]
			delete(spec, "oldOnly")
		}
		if how == "rename" {
			obj["metadata"].(map[string]any)["name"] = "other"
		}
		out, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: out})
	}
	review.Request, review.Response = nil, response
	return json.NewEncoder(w).Encode(review)
}

// webhookCmd runs this converter as a webhook until the script ends; it writes the certificate to
// trust to FILE and its URL to $WEBHOOK: webhook FILE.
func webhookCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: webhook FILE")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := convert(r.Body, w, ""); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	ts.Defer(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), ca, 0o600))
	ts.Setenv("WEBHOOK", server.URL)
}
