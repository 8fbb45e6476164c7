package calico

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
)

// v1Object returns the content of a v1 record with the given JSON metadata.
func v1Object(t *testing.T, meta string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(meta), &m))
	return map[string]any{"metadata": m}
}

// annotated returns outer metadata with the given annotation text.
func annotated(t *testing.T, outer, inner string) map[string]any {
	t.Helper()
	obj := v1Object(t, outer)
	meta := obj["metadata"].(map[string]any)
	annotations, ok := meta["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	annotations[metadataAnnotation] = inner
	return obj
}

// seenCase is the metadata of a record, its annotation, and the metadata that clients saw.
type seenCase struct{ name, outer, inner, want string }

func seenCases() []seenCase {
	return []seenCase{
		{"no annotation: the record's own",
			`{"name":"x","creationTimestamp":"2026-01-01T00:00:00Z","generation":7,"generateName":"x-",` +
				`"labels":{"a":"1"},"annotations":{"b":"2"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1",` +
				`"kind":"Namespace","name":"n","uid":"u"}],"resourceVersion":"5","selfLink":"/x"}`,
			"",
			`{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"generateName":"x-","labels":{"a":"1"},` +
				`"annotations":{"b":"2"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Namespace",` +
				`"name":"n","uid":"u"}]}`},
		{"v3.27.4 and before: uid inside, labels and annotations outside",
			`{"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"user":"1"},"annotations":{"note":"2"}}`,
			`{"uid":"11111111-2222-4333-8444-555555555555","creationTimestamp":"2020-01-01T00:00:00Z",` +
				`"ownerReferences":[{"apiVersion":"projectcalico.org/v3","kind":"Tier","name":"t","uid":"u"}]}`,
			`{"creationTimestamp":"2020-01-01T00:00:00Z","generation":1,"labels":{"user":"1"},` +
				`"annotations":{"note":"2"},"ownerReferences":[{"apiVersion":"projectcalico.org/v3","kind":"Tier",` +
				`"name":"t","uid":"u"}]}`},
		{"v3.27.5: as before, no uid",
			`{"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"user":"1"}}`,
			`{"creationTimestamp":"2020-01-01T00:00:00Z"}`,
			`{"creationTimestamp":"2020-01-01T00:00:00Z","generation":1,"labels":{"user":"1"}}`},
		{"v3.28, v3.29: labels and annotations inside",
			`{"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"projectcalico.org/tier":"default"}}`,
			`{"creationTimestamp":"2021-03-04T05:06:07Z","labels":{"projectcalico.org/tier":"default","old":"yes"},` +
				`"annotations":{"a":"b"}}`,
			`{"creationTimestamp":"2021-03-04T05:06:07Z","generation":1,"labels":{"projectcalico.org/tier":"default",` +
				`"old":"yes"},"annotations":{"a":"b"}}`},
		{"v3.30 and later: the name inside, which is not part of this",
			`{"creationTimestamp":"2026-01-01T00:00:00Z"}`,
			`{"name":"legacy-np","creationTimestamp":"2024-03-04T05:06:07Z"}`,
			`{"creationTimestamp":"2024-03-04T05:06:07Z","generation":1}`},
		{"an empty annotation object, null creationTimestamp",
			`{"creationTimestamp":"2026-01-01T00:00:00Z"}`, `{"creationTimestamp":null}`,
			`{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1}`},
		{"inner labels and annotations win, the metadata annotation goes, outer ones stay",
			`{"labels":{"native":"1","shared":"native"},"annotations":{"native-ann":"1","both":"outer"}}`,
			`{"labels":{"meta":"1","shared":"meta"},"annotations":{"meta-ann":"1","both":"inner",` +
				`"projectcalico.org/metadata":"nested"}}`,
			`{"generation":1,"labels":{"native":"1","shared":"meta","meta":"1"},"annotations":{"native-ann":"1",` +
				`"both":"inner","meta-ann":"1"}}`},
		{"finalizers: inner, then outer, none twice",
			`{"finalizers":["o","both"]}`, `{"finalizers":["both","i"]}`,
			`{"generation":1,"finalizers":["both","i","o"]}`},
		{"owners: inner, then what outer adds, no second controller",
			`{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"n","uid":"u2","controller":true},` +
				`{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u1"}]}`,
			`{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u1","controller":true,` +
				`"blockOwnerDeletion":true}]}`,
			`{"generation":1,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u1",` +
				`"controller":true,"blockOwnerDeletion":true},{"apiVersion":"v1","kind":"Namespace","name":"n",` +
				`"uid":"u2"}]}`},
		{"a deletion that began: outer before inner, the period goes with it",
			`{"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["f"]}`,
			`{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30}`,
			`{"generation":1,"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,` +
				`"finalizers":["f"]}`},
		{"a deletion only inner knows",
			`{}`, `{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30}`,
			`{"generation":1,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30}`},
		{"a deletion of a record without annotation",
			`{"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0}`, "",
			`{"generation":1,"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0}`},
		{"managedFields: only what v3 clients own",
			`{"managedFields":[{"manager":"Go-http-client","operation":"Update",` +
				`"apiVersion":"crd.projectcalico.org/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}`,
			`{"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"projectcalico.org/v3",` +
				`"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:order":{}}}},` +
				`{"manager":"old","operation":"Update","apiVersion":"crd.projectcalico.org/v1"}]}`,
			`{"generation":1,"managedFields":[{"manager":"kubectl","operation":"Apply",` +
				`"apiVersion":"projectcalico.org/v3","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",` +
				`"fieldsV1":{"f:spec":{"f:order":{}}}}]}`},
		{"managedFields of a record without annotation go",
			`{"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"crd.projectcalico.org/v1"}]}`, "",
			`{"generation":1}`},
		{"inner namespace, resourceVersion, generation and selfLink do not count",
			`{"namespace":"team-a","generation":4}`,
			`{"namespace":"other","resourceVersion":"9","generation":5,"selfLink":"/y","generateName":"g-"}`,
			`{"generation":1,"generateName":"g-"}`},
	}
}

// TestSeenMetadata has a case for each historical shape of the annotation (by release), and one for
// each rule of kept metadata.
func TestSeenMetadata(t *testing.T) {
	for _, tt := range seenCases() {
		t.Run(tt.name, func(t *testing.T) {
			obj := v1Object(t, tt.outer)
			if tt.inner != "" {
				obj = annotated(t, tt.outer, tt.inner)
			}
			m, err := readMetadata(obj)
			require.NoError(t, err)
			require.Equal(t, tt.inner != "", m.annotated)
			got, err := metadataObject(m.seen())
			require.NoError(t, err)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(text))
		})
	}
}

func TestReadMetadataRefusesWhatIsMalformed(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		obj        map[string]any
	}{
		{"no metadata", finding.Undecodable.Name, map[string]any{}},
		{"metadata of another type", finding.Undecodable.Name, map[string]any{"metadata": "x"}},
		{"labels that are no strings", finding.Undecodable.Name, v1Object(t, `{"labels":{"a":1}}`)},
		{"an empty annotation", codeBadMetadata.Name, annotated(t, `{}`, "")},
		{"an annotation that is no JSON", codeBadMetadata.Name, annotated(t, `{}`, `{"name":`)},
		{"an annotation of another type", codeBadMetadata.Name, annotated(t, `{}`, `[]`)},
		{"an annotation with a bad time", codeBadMetadata.Name,
			annotated(t, `{}`, `{"creationTimestamp":"yesterday"}`)},
		{"an annotation with labels that are no strings", codeBadMetadata.Name,
			annotated(t, `{}`, `{"labels":{"a":1}}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readMetadata(tt.obj)
			r := finding.Of(err)
			require.NotNil(t, r, "%v", err)
			require.Equal(t, tt.code, r.Code.Name)
			require.NotEmpty(t, r.Reason)
		})
	}
}

func TestSeenDoesNotTouchTheRecord(t *testing.T) {
	m := metadata{annotated: true, outer: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}},
		inner: metav1.ObjectMeta{Labels: map[string]string{"a": "2"}}}
	require.Equal(t, "2", m.seen().Labels["a"])
	require.Equal(t, "1", m.outer.Labels["a"])
}

// TestPlainMetadata: plainMetadata reads accepted input like FromUnstructured.
func TestPlainMetadata(t *testing.T) {
	random, accepted := rand.New(rand.NewPCG(1, 61)), 0
	values := []any{
		nil, "", "x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00", "2026-01-01", int64(0), int64(7), 1.5,
		true, []any{}, []any{"x"}, []any{map[string]any{}},
		map[string]any{}, map[string]any{"a": "b"}, map[string]any{"a": int64(1)}, map[string]any{"a": nil},
	}
	names := []string{"name", "namespace", "uid", "generation", "creationTimestamp", "labels", "annotations",
		"managedFields", "finalizers", "deletionTimestamp", "x"}
	for range 20_000 {
		raw := map[string]any{"name": "n", "uid": storedUID, "creationTimestamp": "2026-01-01T00:00:00Z"}
		for range random.IntN(4) {
			raw[names[random.IntN(len(names))]] = values[random.IntN(len(values))]
		}
		got, ok := plainMetadata(raw)
		if !ok {
			continue
		}
		accepted++
		var want metav1.ObjectMeta
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &want), "%v", raw)
		if len(want.ManagedFields) == 0 {
			want.ManagedFields = nil
		}
		require.Equal(t, want, got, "%v", raw)
	}
	require.Greater(t, accepted, 3000)
}
