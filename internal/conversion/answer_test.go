package conversion

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// canned is an endpoint that answers all requests with text, with the request's uid in place of
// UID.
type canned struct {
	text  string
	calls *int
}

func (c canned) at(*apiextensionsv1.CustomResourceDefinition) (endpoint, error) {
	uid := regexp.MustCompile(`"uid":"([^"]*)"`)
	return endpoint{url: "https://canned.invalid/", send: func(req *http.Request, _ int64) (answer, error) {
		*c.calls++
		body, err := io.ReadAll(req.Body)
		text := strings.ReplaceAll(c.text, "UID", string(uid.FindSubmatch(body)[1]))
		return answer{contentType: "application/json", body: []byte(text)}, err
	}}, nil
}

// FuzzAnswer checks that for any answer Convert ends without a panic, an accepted object is still
// the same object at the other version, and an error is one bounded line.
func FuzzAnswer(f *testing.F) {
	body :=
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"UID",` +
			`"result":{"status":%q,` +
			`"message":"m"},"convertedObjects":[%s]}}`
	obj :=
		`{"apiVersion":"demo.example.com/v2","kind":"Widget","metadata":{"name":"w0","namespace":"default",` +
			`"uid":"uid-w0"%s}}`
	for _, seed := range []string{
		fmt.Sprintf(body, "Success", fmt.Sprintf(obj, "")),
		fmt.Sprintf(body, "Success", fmt.Sprintf(obj, `,"labels":{"a":"b"},"annotations":null,"finalizers":["x"]`)),
		fmt.Sprintf(body, "Success", fmt.Sprintf(obj, `,"labels":{"a":1}`)+","+fmt.Sprintf(obj, "")),
		fmt.Sprintf(body, "Success", `null,[],"x",1`),
		fmt.Sprintf(body, "Success", fmt.Sprintf(obj, `},"items":[{"metadata":null}],"x":{"y":1e999`)),
		fmt.Sprintf(body, "Failure", ""),
		strings.ReplaceAll(fmt.Sprintf(body, "Success", fmt.Sprintf(obj, "")), "k8s.io/v1", "k8s.io/v1beta1"),
		`{"response":{"convertedObjects":[` + strings.Repeat("[", 20000) + `]}}`,
		`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"\u001b[2J"}`,
		"", "null", "[]", "{}", "\x00", "---\nkind: ConversionReview\n",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, beta bool) {
		calls := 0
		c := Converter{name: "canned", at: canned{text, &calls}.at}
		review := "v1"
		if beta {
			review = "v1beta1"
		}
		in := object(t, "w0", "")
		results, err := c.Convert(t.Context(), widgets(apiextensionsv1.WebhookClientConfig{}, review), "v2",
			[]map[string]any{in})
		require.Equal(t, 1, calls)
		require.Equal(t, object(t, "w0", ""), in)
		if err == nil {
			require.Len(t, results, 1)
			err = results[0].Err
		}
		if err != nil {
			require.Less(t, len(err.Error()), 3*maxSaid)
			require.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl), "%q", err)
			return
		}
		out := results[0].Object
		require.Equal(t, v2, out["apiVersion"])
		require.Equal(t, "Widget", out["kind"])
		kept, changed := in["metadata"].(m), out["metadata"].(m)
		for _, field := range []string{"labels", "annotations"} {
			delete(kept, field)
			delete(changed, field)
		}
		require.Equal(t, kept, changed)
	})
}
