package transform_test

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

type planned func(ctx context.Context, v *transform.View) error

func (p planned) Plan(ctx context.Context, v *transform.View) error { return p(ctx, v) }

// plan runs a plan on a snapshot of testdata and returns the report and a reader of the output.
func plan(t *testing.T, in string, p planned) (*transform.Report, *inspect.Reader) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "test", In: "../testdata/" + in, Out: out}, p)
	if err != nil {
		require.ErrorIs(t, err, transform.ErrRefused)
		return report, nil
	}
	s, err := snapshot.Open(t.Context(), out, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return report, inspect.NewReader(s, nil)
}

// object returns the object of a type and name in the view.
func object(t *testing.T, v *transform.View, name, object string) *inspect.Object {
	t.Helper()
	types, err := v.Types(t.Context())
	require.NoError(t, err)
	found, err := types.Resolve(name)
	require.NoError(t, err)
	for o, err := range v.Objects(t.Context(), found[0], inspect.Selection{Names: []string{object}}) {
		require.NoError(t, err)
		return o
	}
	require.Fail(t, "not found", "%s/%s", name, object)
	return nil
}

// with returns the content of an object with another value in a field; nil removes the field.
func with(t *testing.T, o *inspect.Object, value any, path ...string) map[string]any {
	t.Helper()
	content := runtime.DeepCopyJSON(o.Content)
	if value == nil {
		unstructured.RemoveNestedField(content, path...)
		return content
	}
	require.NoError(t, unstructured.SetNestedField(content, value, path...))
	return content
}

// putCase is a change of one field of an object.
type putCase struct {
	in, kind, object string
	value            any
	path             []string
	generation       any // afterwards
	problem          string
	unchanged        bool
}

func putCases() map[string]putCase {
	return map[string]putCase{
		"native": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: int64(7),
			path: []string{"spec", "replicas"}, generation: int64(2)},
		"native status": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: int64(7),
			path: []string{"status", "replicas"}, generation: int64(1)},
		"annotation counts": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: "x",
			path: []string{"metadata", "annotations", "a"}, generation: int64(2)},
		"annotation": {in: "kubectl/all.db.gz", kind: "ds", object: "ds", value: "x",
			path: []string{"metadata", "annotations", "a"}, generation: int64(1)},
		"no generation": {in: "kubectl/all.db.gz", kind: "node", object: "n1", value: nil,
			path: []string{"spec", "unschedulable"}},
		"generation itself": {in: "kubectl/all.db.gz", kind: "ds", object: "ds", value: int64(9),
			path: []string{"metadata", "generation"}, unchanged: true},
		"custom": {in: "storage/before.db.gz", kind: "widgets", object: "untouched", value: int64(9),
			path: []string{"spec", "size"}, generation: int64(2)},
		"nothing": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: "9",
			path: []string{"metadata", "resourceVersion"}, unchanged: true},
		"field of no kind": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: int64(7),
			path: []string{"spec", "replica"}, problem: "spec.replica: the kind has no such field"},
		"wrong type": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: "s3cret",
			path: []string{"spec", "replicas"}, problem: "spec.replicas"},
		"beyond 32 bits": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: int64(99999999999),
			path: []string{"spec", "replicas"}, problem: "spec.replicas"},
		"APIService": {in: "kubectl/all.db.gz", kind: "apiservices", object: "v1.apps", value: int64(9),
			path: []string{"spec", "versionPriority"}},
		"its type": {in: "kubectl/all.db.gz", kind: "apiservices", object: "v1.apps", value: "s3cret",
			path: []string{"spec", "versionPriority"}, problem: "spec.versionPriority"},
		"its field": {in: "kubectl/all.db.gz", kind: "apiservices", object: "v1.apps", value: "s3cret",
			path: []string{"spec", "priority"}, problem: "spec.priority"},
		"native label": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: "s3cret!",
			path: []string{"metadata", "labels", "x"}, problem: "metadata.labels (a valid label must be"},
		"another kind": {in: "kubectl/all.db.gz", kind: "deploy", object: "d", value: "ReplicaSet",
			path: []string{"kind"}, problem: "kind of a built-in object"},
		"field of no schema": {in: "storage/before.db.gz", kind: "widgets", object: "untouched", value: int64(9),
			path: []string{"spec", "sizes"}, problem: "spec.sizes (Unknown field)"},
		"type of no schema": {in: "storage/before.db.gz", kind: "widgets", object: "untouched", value: "s3cret",
			path: []string{"spec", "size"}, problem: "spec.size (FieldValueTypeInvalid)"},
		"version that is gone": {in: "storage/before.db.gz", kind: "widgets", object: "untouched",
			value: "demo.example.com/v7", path: []string{"apiVersion"}, problem: "v7"},
		"another name": {in: "storage/before.db.gz", kind: "widgets", object: "untouched", value: "other",
			path: []string{"metadata", "name"}, problem: "other"},
	}
}

func TestPutObject(t *testing.T) {
	for name, test := range putCases() {
		t.Run(name, func(t *testing.T) {
			var before, want map[string]any
			report, after := plan(t, test.in, func(ctx context.Context, v *transform.View) error {
				o := object(t, v, test.kind, test.object)
				before = runtime.DeepCopyJSON(o.Content)
				want = with(t, o, test.value, test.path...)
				staged, err := v.PutObject(ctx, o, want)
				require.NoError(t, err)
				require.Equal(t, before, o.Content, "the object itself changed")
				require.Equal(t, test.problem == "" && !test.unchanged, staged)
				return nil
			})
			if test.problem != "" {
				require.Equal(t, transform.Refused, report.Outcome)
				require.Contains(t, report.Problems[len(report.Problems)-1].Reason, test.problem)
				require.NotContains(t, report.Problems[len(report.Problems)-1].Reason, "s3cret")
				return
			}
			if test.unchanged {
				require.Zero(t, report.Changes)
				return
			}
			require.Equal(t, transform.Changes{Updated: 1}, report.Changes)
			got := read(t, after, test.kind, test.object)
			metadata := got["metadata"].(map[string]any)
			require.Equal(t, test.generation, metadata["generation"])
			for _, m := range []map[string]any{metadata, want["metadata"].(map[string]any)} {
				delete(m, "generation")
				delete(m, "resourceVersion")
			}
			require.Equal(t, want, got)
		})
	}
}

// read returns the content of an object of an output.
func read(t *testing.T, r *inspect.Reader, kind, name string) map[string]any {
	t.Helper()
	types, err := r.Types(t.Context())
	require.NoError(t, err)
	found, err := types.Resolve(kind)
	require.NoError(t, err)
	for o, err := range r.Objects(t.Context(), found[0], inspect.Selection{Names: []string{name}}) {
		require.NoError(t, err)
		require.NoError(t, o.Err)
		return o.Content
	}
	return nil
}

// TestPutObjectKeepsText checks that JSON keeps the bytes around a change.
func TestPutObjectKeepsText(t *testing.T) {
	var before, staged []byte
	plan(t, "storage/before.db.gz", func(ctx context.Context, v *transform.View) error {
		o := object(t, v, "widgets", "untouched")
		before = bytes.Clone(o.Value)
		_, err := v.PutObject(ctx, o, with(t, o, int64(4), "spec", "size"))
		require.NoError(t, err)
		e, err := v.Get(ctx, o.Key)
		staged = bytes.Clone(e.Value)
		return err
	})
	want := bytes.Replace(before, []byte(`"size":3`), []byte(`"size":4`), 1)
	require.Equal(t, string(bytes.Replace(want, []byte(`"generation":1`), []byte(`"generation":2`), 1)), string(staged))
}

// TestObjectsAreThoseStaged checks that a later change sees an earlier one, even of a definition.
func TestObjectsAreThoseStaged(t *testing.T) {
	report, after := plan(t, "storage/before.db.gz", func(ctx context.Context, v *transform.View) error {
		o := object(t, v, "widgets", "untouched")
		_, err := v.PutObject(ctx, o, with(t, o, int64(9), "spec", "sizes"))
		require.NoError(t, err)
		return nil
	})
	require.Nil(t, after)
	require.Equal(t, transform.Refused, report.Outcome)

	_, after = plan(t, "storage/before.db.gz", func(ctx context.Context, v *transform.View) error {
		definition := object(t, v, "crd", "widgets.demo.example.com")
		content := runtime.DeepCopyJSON(definition.Content)
		version := content["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		properties, _, err := unstructured.NestedFieldNoCopy(version,
			"schema", "openAPIV3Schema", "properties", "spec", "properties")
		require.NoError(t, err)
		sizes := properties.(map[string]any)
		sizes["sizes"] = maps.Clone(sizes["size"].(map[string]any))
		staged, err := v.PutObject(ctx, definition, content)
		require.NoError(t, err)
		require.True(t, staged)

		for _, size := range []int64{9, 10} {
			o := object(t, v, "widgets", "untouched")
			staged, err = v.PutObject(ctx, o, with(t, o, size, "spec", "sizes"))
			require.NoError(t, err)
			require.True(t, staged)
		}
		return nil
	})
	got := read(t, after, "widgets", "untouched")
	require.Equal(t, int64(10), got["spec"].(map[string]any)["sizes"])
	require.Equal(t, int64(3), got["metadata"].(map[string]any)["generation"])
}

// TestPutObjectHasABudget checks that the rules of definitions have one budget for all changes of a
// run.
func TestPutObjectHasABudget(t *testing.T) {
	list := `[` + strings.Repeat("1,", 44) + `1]`
	rule := map[string]any{"rule": list + `.all(a, ` + list + `.all(b, ` + list + `.all(c, a + b + c > 0)))`}
	report, after := plan(t, "storage/before.db.gz", func(ctx context.Context, v *transform.View) error {
		definition := object(t, v, "crd", "widgets.demo.example.com")
		content := runtime.DeepCopyJSON(definition.Content)
		for _, version := range content["spec"].(map[string]any)["versions"].([]any) {
			require.NoError(t, unstructured.SetNestedSlice(version.(map[string]any), []any{rule}, "schema",
				"openAPIV3Schema", "x-kubernetes-validations"))
		}
		staged, err := v.PutObject(ctx, definition, content)
		require.NoError(t, err)
		require.True(t, staged)
		puts := 0
		for size := range int64(40) {
			o := object(t, v, "widgets", "untouched")
			staged, err := v.PutObject(ctx, o, with(t, o, 100+size, "spec", "size"))
			require.NoError(t, err)
			if staged {
				puts++
			}
		}
		require.Equal(t, 13, puts)
		return nil
	})
	require.Nil(t, after)
	require.Equal(t, transform.CodeInvalidObject, report.Problems[1].Code)
	require.Contains(t, report.Problems[1].Reason, "cost too much for all objects together")
}

// A stored caBundle of zero bytes is removed when a server writes the object. The server counts the
// removal as a change of the webhooks. Source: PrepareForUpdate compares by reflect.DeepEqual.
func TestPutObjectEmptyBundle(t *testing.T) {
	for _, path := range [][]string{{"metadata", "labels", "a"}, {"webhooks"}} {
		_, after := plan(t, "reports/base.db.gz", func(ctx context.Context, v *transform.View) error {
			o := object(t, v, "validatingwebhookconfigurations", "guard")
			parsed, err := o.ParseValue()
			require.NoError(t, err)
			var stored admissionv1.ValidatingWebhookConfiguration
			require.NoError(t, stored.Unmarshal(parsed.Raw))
			stored.Webhooks[0].ClientConfig.CABundle = []byte{}
			raw, err := stored.Marshal()
			require.NoError(t, err)
			value, err := encoding.WithMessage(o.Value, raw)
			require.NoError(t, err)
			require.NoError(t, v.Put(ctx, o.Key, value))

			o = object(t, v, "validatingwebhookconfigurations", "guard")
			content := runtime.DeepCopyJSON(o.Content)
			if path[0] == "webhooks" {
				content["webhooks"].([]any)[0].(map[string]any)["timeoutSeconds"] = int64(7)
			} else {
				require.NoError(t, unstructured.SetNestedField(content, "b", path...))
			}
			staged, err := v.PutObject(ctx, o, content)
			require.NoError(t, err)
			require.True(t, staged)
			o = object(t, v, "validatingwebhookconfigurations", "guard")
			parsed, err = o.ParseValue()
			require.NoError(t, err)
			var put admissionv1.ValidatingWebhookConfiguration
			require.NoError(t, put.Unmarshal(parsed.Raw))
			require.Nil(t, put.Webhooks[0].ClientConfig.CABundle)
			require.Equal(t, stored.Generation+1, put.Generation, "%v", path)
			return nil
		})
		require.NotNil(t, after)
	}
}

// TestPutObjectUnfit changes a stored object with a field that its kind does not have. A change
// that fits is accepted, and keeps the field.
func TestPutObjectUnfit(t *testing.T) {
	for _, test := range []struct {
		value   any
		path    []string
		problem string
	}{
		{"b", []string{"metadata", "labels", "a"}, ""},
		{true, []string{"spec", "paused"}, ""},
		{int64(-1), []string{"spec", "minReadySeconds"}, "spec.minReadySeconds"},
		{"s3cret", []string{"spec", "paused"}, "spec.paused: a field has a value that its type"},
	} {
		report, _ := plan(t, "kubectl/all.db.gz", func(ctx context.Context, v *transform.View) error {
			o := object(t, v, "deploy", "d")
			value, err := encoding.EncodeObject(with(t, o, int64(7), "spec", "replica"), encoding.FormatJSON)
			require.NoError(t, err)
			require.NoError(t, v.Put(ctx, o.Key, value))
			o = object(t, v, "deploy", "d")
			want := with(t, o, test.value, test.path...)
			staged, err := v.PutObject(ctx, o, want)
			require.NoError(t, err)
			require.Equal(t, test.problem == "", staged, "%s", test.path)
			if staged {
				require.Equal(t, want["spec"], object(t, v, "deploy", "d").Content["spec"])
			}
			return nil
		})
		if test.problem != "" {
			problem := report.Problems[len(report.Problems)-1]
			require.Equal(t, transform.CodeInvalidObject, problem.Code)
			require.Contains(t, problem.Reason, test.problem)
			require.NotContains(t, problem.Reason, "s3cret")
		}
	}
}
