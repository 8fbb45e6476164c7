package conversion

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcdshift/etcdshift/encoding"
)

// encoded returns an object's bytes, for comparing content that maps share.
func encoded(t testing.TB, obj map[string]any) string {
	data, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	return string(data)
}

// A batch is one call in the first ConversionReview version of the CRD, without the objects already
// at the version. Results are exact; the input does not change, and results do not share it except
// for such objects.
func TestConvertsABatchInOneCall(t *testing.T) {
	for _, review := range []string{"v1", "v1beta1"} {
		var got []reviewIn
		s := serve(t, reviewer(func(in reviewIn) m {
			got = append(got, in)
			return good(in, nil)
		}))
		c, err := Webhook(WebhookOptions{URL: s.URL, CA: s.ca})
		require.NoError(t, err)
		objs := objects(t, 4)
		objs[2]["apiVersion"] = v2
		before := make([]string, len(objs))
		for i := range objs {
			before[i] = encoded(t, objs[i])
		}
		crd := widgets(apiextensionsv1.WebhookClientConfig{}, "v9", review, "v1", "v1beta1")
		results, err := c.Convert(t.Context(), crd, "v2", objs)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "apiextensions.k8s.io/"+review, got[0].APIVersion)
		require.Equal(t, v2, got[0].Request.DesiredAPIVersion)
		require.Len(t, got[0].Request.Objects, 3)
		for i, r := range results {
			require.NoError(t, r.Err)
			if i == 2 {
				require.Equal(t, objs[i], r.Object)
				continue
			}
			require.Equal(t, want(objs[i]), r.Object)
			r.Object["metadata"].(m)["labels"].(m)["x"] = "y"
			r.Object["spec"].(m)["list"].([]any)[4].(m)["deep"] = false
			require.Equal(t, before[i], encoded(t, objs[i]))
		}
	}
}

// TestAsksOnlyWhereItMust checks that no call is made if no object needs a conversion.
func TestAsksOnlyWhereItMust(t *testing.T) {
	c, err := Webhook(WebhookOptions{URL: "https://127.0.0.1:1"})
	require.NoError(t, err)
	crd := widgets(apiextensionsv1.WebhookClientConfig{})
	results, err := c.Convert(t.Context(), crd, "v2", nil)
	require.NoError(t, err)
	require.Empty(t, results)

	current, gone, foreign, none := object(t, "a", ""), object(t, "b", ""), object(t, "c", ""), object(t, "d", "")
	current["apiVersion"], gone["apiVersion"], foreign["apiVersion"] = v2, group+"/v0", "other/v1"
	delete(none, "apiVersion")
	results, err = c.Convert(t.Context(), crd, "v2", []map[string]any{current, gone, foreign, none})
	require.NoError(t, err)
	require.Equal(t, current, results[0].Object)
	require.ErrorContains(t, results[1].Err, "request to convert CR from an invalid group/version: demo.example.com/v0")
	require.ErrorContains(t, results[2].Err, `other/v1, Kind=Widget is unstructured and is not suitable for converting`)
	require.ErrorContains(t, results[3].Err, "is not suitable for converting")

	for want, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"widgets.demo.example.com does not convert by webhook": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		},
		`takes ConversionReview ["v7"], only v1 and v1beta1 ` +
			`are known`: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ConversionReviewVersions = []string{"v7"}
		},
		`has no version "v2"`: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = crd.Spec.Versions[:1]
		},
		"caBundle: no certificate in PEM found": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("nonsense")
		},
	} {
		crd := widgets(apiextensionsv1.WebhookClientConfig{})
		change(crd)
		_, err := c.Convert(t.Context(), crd, "v2", objects(t, 1))
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrUnusable)
	}
}

// TestNamesTheObjectAtFault checks for all kinds of faults that the one faulty object is named, the
// others pass, and halving needs few calls.
func TestNamesTheObjectAtFault(t *testing.T) {
	metadata := func(field string, value any) func(m) any {
		return func(obj m) any { obj["metadata"].(m)[field] = value; return obj }
	}
	for _, tc := range []struct {
		lie  func(m) any
		want string
	}{
		{metadata("name", "other"), "must have the same name: w5 != other"},
		{metadata("namespace", "other"), "must have the same namespace: default != other"},
		{metadata("uid", "other"), "must have the same UID: uid-w5 != other"},
		{metadata("uid", nil), "must have the same UID: uid-w5 !="},
		{metadata("labels", m{"a": 1}), "metadata.labels[a] must be a string, but is int64"},
		{metadata("labels", m{"a b": "c"}), "metadata.labels: Invalid value"},
		{metadata("annotations", "x"), "invalid metadata.annotations of type string"},
		{func(obj m) any { obj["kind"] = "Other"; return obj }, "invalid kind (expected Widget, received Other)"},
		{func(obj m) any { obj["apiVersion"] = v1; return obj },
			"invalid groupVersion (expected demo.example.com/v2, received demo.example.com/v1)"},
		{func(obj m) any { delete(obj, "metadata"); return obj }, "must have the same name: w5 !="},
		{func(m) any { return nil }, "returned 0 objects, expected 1"},
		{func(obj m) any { delete(obj, "kind"); return obj },
			"response.convertedObjects[0] is not an object with a kind"},
		{func(m) any { return "a word" }, "response.convertedObjects[0] is not an object with a kind"},
		{func(m) any { return json.RawMessage("null") }, "response.convertedObjects[0] is not an object with a kind"},
		{func(obj m) any { obj["spec"] = strings.Repeat("x", 2*freeAnswer); return obj },
			"the answer is longer than 1677"},
	} {
		s := serve(t, reviewer(func(in reviewIn) m {
			return good(in, func(obj m) any {
				if obj["metadata"].(m)["name"] == "w5" {
					return tc.lie(obj)
				}
				return obj
			})
		}))
		objs := objects(t, 16)
		results, err := s.convert(t, 0, objs...)
		require.NoError(t, err, tc.want)
		for i, r := range results {
			if i != 5 {
				require.NoError(t, r.Err, tc.want)
				require.Equal(t, want(objs[i]), r.Object)
				continue
			}
			require.Nil(t, r.Object, tc.want)
			require.ErrorIs(t, r.Err, errRefused)
			require.ErrorContains(t, r.Err, tc.want)
			require.NotContains(t, r.Err.Error(), "9007199254740993", "an object is quoted")
		}
		require.EqualValues(t, 9, s.calls.Load(), tc.want) // 16, and two halves of 16, 8, 4, 2
	}
}

// A converter with answers that a server never accepts has each object refused with its reason.
func TestRefusesEachObject(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(reviewIn) m
		want   string
	}{
		"too many": {func(in reviewIn) m {
			out := good(in, nil)
			out["response"].(m)["convertedObjects"] = append(out["response"].(m)["convertedObjects"].([]any),
				m{"kind": "Widget"})
			return out
		}, "returned 2 objects, expected 1"},
		"failure": {func(in reviewIn) m {
			out := answerOf(in, nil)
			out["response"].(m)["result"] = m{"status": "Failure", "message": "no\n\x1b[31mway"}
			return out
		}, "failed: no [31mway"},
		"failure without words": {func(in reviewIn) m {
			out := answerOf(in, nil)
			out["response"].(m)["result"] = m{"status": "Failure"}
			return out
		}, "response.result.status was 'Failure', not 'Success'"},
		"no status": {func(in reviewIn) m {
			out := good(in, nil)
			delete(out["response"].(m), "result")
			return out
		}, "response.result.status was '', not 'Success'"},
		"long words": {func(in reviewIn) m {
			out := answerOf(in, nil)
			out["response"].(m)["result"] = m{"status": "Failure", "message": strings.Repeat("ä", 50000) + "the end"}
			return out
		}, "ä [...] ä"},
	} {
		s := serve(t, reviewer(tc.answer))
		results, err := s.convert(t, 0, objects(t, 3)...)
		require.NoError(t, err, name)
		for _, r := range results {
			require.ErrorIs(t, r.Err, errRefused, name)
			require.ErrorContains(t, r.Err, tc.want, name)
			require.Less(t, len(r.Err.Error()), 3000)
		}
	}
}

// Unusable answers end the Convert after few calls, not after one call for each object.
func TestGivesUpOnGarbage(t *testing.T) {
	text := func(contentType, body string, status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.Header().Set("Warning", `299 - "do not print"`)
			w.WriteHeader(status)
			w.Write([]byte(body))
		})
	}
	edit := func(edit func(in reviewIn, out m)) http.Handler {
		return reviewer(func(in reviewIn) m {
			out := good(in, nil)
			edit(in, out)
			return out
		})
	}
	notReview := " bytes) is not a ConversionReview in JSON"
	for name, tc := range map[string]struct {
		handler http.Handler
		want    string
		calls   int64 // with 8 objects
	}{
		"garbage": {text("application/json", "<html>secret", 200), "the answer (12" + notReview, 5},
		"html":    {text("text/html", "<html>secret", 200), "the answer (12" + notReview, 5},
		"empty":   {text("application/json", "", 200), "empty answer", 5},
		"list":    {text("application/json", "[]", 200), "the answer (2" + notReview, 5},
		"another kind": {text("application/json", `{"kind":"Status","apiVersion":"v1","status":"Success"}`, 200),
			`the answer is "v1" "Status", not "apiextensions.k8s.io/v1" "ConversionReview"`, 5},
		"no kind": {edit(func(_ reviewIn, out m) { delete(out, "kind") }),
			`the answer is "apiextensions.k8s.io/v1" "", not`, 5},
		"other version": {edit(func(_ reviewIn, out m) { out["apiVersion"] = "apiextensions.k8s.io/v1beta1" }),
			`the answer is "apiextensions.k8s.io/v1beta1" "ConversionReview", not`, 5},
		"echo": {edit(func(in reviewIn, out m) { out["request"] = in.Request; delete(out, "response") }),
			"a ConversionReview without a response", 5},
		"other uid": {edit(func(_ reviewIn, out m) { out["response"].(m)["uid"] = "other" }),
			`response.uid "other" is not the request's`, 5},
		"500": {text("text/plain; charset=utf-8", "out of\norder", 500),
			"answered HTTP status 500 Internal Server Error: out of order", 5},
		"500 in JSON": {text("application/json", `{"secret":1}`, 500), "answered HTTP status 500 Internal Server Error",
			5},
		"429": {text("text/plain", "", 429), "answered HTTP status 429 Too Many Requests", 5},
		"404": {http.NotFoundHandler(), "answered HTTP status 404 Not Found: 404 page not found", 5},
		"redirect": {text("text/plain", "", 307),
			"answered HTTP status 307 Temporary Redirect, and a redirect is not followed", 1},
		"panic": {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			"connection lost before an answer: EOF", 5},
		"cut": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("{"))
		}), "connection lost in the middle of an answer: unexpected EOF", 5},
	} {
		s := serve(t, tc.handler)
		results, err := s.convert(t, 0, objects(t, 8)...)
		require.ErrorIs(t, err, ErrUnusable, name)
		require.ErrorContains(t, err, "conversion by "+s.URL+": converter unusable: ", name)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "secret", name)
		require.Nil(t, results, name)
		require.Equal(t, tc.calls, s.calls.Load(), name) // 8, 4, 2, and two single objects
		_, err = s.convert(t, 0, objects(t, 1)...)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, tc.calls+1, s.calls.Load(), name)
	}
}

// An object that crashes the converter is distinguished from a converter that always crashes.
func TestNamesTheObjectThatBreaksTheConverter(t *testing.T) {
	for _, bad := range []string{"w0", "w3", "w7"} {
		s := serve(t, reviewer(func(in reviewIn) m {
			return good(in, func(obj m) any {
				if obj["metadata"].(m)["name"] == bad {
					panic(http.ErrAbortHandler)
				}
				return obj
			})
		}))
		results, err := s.convert(t, 0, objects(t, 8)...)
		require.NoError(t, err)
		for i, r := range results {
			if fmt.Sprintf("w%d", i) == bad {
				require.EqualError(t, r.Err, "conversion refused: connection lost before an answer: EOF")
			} else {
				require.NoError(t, r.Err)
			}
		}
	}
}
