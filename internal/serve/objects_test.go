package serve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestEveryObject checks that discovery has each type of the snapshot, and that lists have the same
// objects as Reader.Objects.
func TestEveryObject(t *testing.T) {
	for _, path := range []string{everyKey, calico, flipped} {
		s := start(t, path, secrets)
		types, err := s.source.Types(t.Context())
		require.NoError(t, err)
		client, seen := s.dynamic(t), map[string]bool{}
		for _, gvr := range s.resources(t) {
			if gvr.Group == "events.k8s.io" {
				continue
			}
			kind := types.Of(gvr.GroupResource())
			require.NotNil(t, kind, gvr)
			seen[kind.Name()] = true
			list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, gvr)
			i := 0
			for o, err := range s.source.Objects(t.Context(), kind, inspect.Selection{}) {
				require.NoError(t, err)
				o.AsServed()
				if kind.CRD == nil && o.Content["apiVersion"] == gvr.GroupVersion().String() { // otherwise converted
					want, err := json.Marshal(o.Content)
					require.NoError(t, err)
					got, err := json.Marshal(list.Items[i].Object)
					require.NoError(t, err)
					require.JSONEq(t, string(want), string(got), string(o.Key))
				}
				require.Equal(t, o.Parsed.Name, list.Items[i].GetName())
				i++
			}
			require.Len(t, list.Items, i, gvr)
		}
		for _, kind := range types.All() {
			if kind.Objects > 0 && !seen[kind.Name()] {
				require.Contains(t, []string{"masterleases", "peerserverleases", "ranges"}, kind.Name())
			}
		}
		require.Empty(t, s.reported)
	}
}

// TestFormats checks that an object and a list are equal in each format.
func TestFormats(t *testing.T) {
	for _, path := range []string{everyKey, calico} { // calico has definitions with multi-line texts
		requireSameFormats(t, start(t, path))
	}
}

func requireSameFormats(t *testing.T, s *served) {
	t.Helper()
	for _, gvr := range s.resources(t) {
		path := objectPath(gvr)
		_, text := s.do(t, "GET", path, "", "Accept", "application/json")
		want := &unstructured.UnstructuredList{}
		require.NoError(t, want.UnmarshalJSON([]byte(text)), path)

		_, text = s.do(t, "GET", path, "", "Accept", "application/json", "User-Agent", "curl/8.0")
		require.True(t, json.Valid([]byte(text)), path)
		var indented map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &indented))
		again, err := json.MarshalIndent(indented, "", "  ")
		require.NoError(t, err)
		require.Len(t, text, len(again)+1, "%s: indented as the library does", path)

		_, text = s.do(t, "GET", path, "", "Accept", "application/yaml")
		fromYAML, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		requireSameList(t, want, fromYAML, path)

		resp, text := s.do(t, "GET", path, "", "Accept", "application/cbor")
		require.Equal(t, "application/cbor", resp.Header.Get("Content-Type"))
		fromCBOR := &unstructured.UnstructuredList{}
		_, _, err = cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Decode([]byte(text), nil, fromCBOR)
		require.NoError(t, err, path)
		asJSON, err := fromCBOR.MarshalJSON()
		require.NoError(t, err)
		requireSameList(t, want, asJSON, path)

		resp, text = s.do(t, "GET", path, "", "Accept", "application/vnd.kubernetes.protobuf")
		if !scheme.Scheme.Recognizes(gvr.GroupVersion().WithKind(want.GetKind())) &&
			gvr.Resource != "customresourcedefinitions" {
			require.Equal(t, 406, resp.StatusCode, path)
			continue
		}
		require.Equal(t, 200, resp.StatusCode, "%s: %s", path, text)
		if gvr.Resource == "customresourcedefinitions" {
			continue
		}
		fromProto, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
		require.NoError(t, err, path)
		typed, err := scheme.Scheme.New(gvr.GroupVersion().WithKind(want.GetKind()))
		require.NoError(t, err)
		_, asText := s.do(t, "GET", path, "", "Accept", "application/json")
		require.NoError(t, runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), []byte(asText), typed))
		if len(want.Items) == 0 { // JSON has an empty list, protobuf none
			continue
		}
		fromProto.GetObjectKind().SetGroupVersionKind(typed.GetObjectKind().GroupVersionKind())
		require.Equal(t, typed, fromProto, path)
	}
}

func requireSameList(t *testing.T, want *unstructured.UnstructuredList, text []byte, path string) {
	t.Helper()
	got := &unstructured.UnstructuredList{}
	require.NoError(t, got.UnmarshalJSON(text), path)
	require.Equal(t, want, got, path)
}

// TestTables checks that rows have a cell for each of kubectl's columns.
func TestTables(t *testing.T) {
	s := start(t, everyKey)
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, gvr := range s.resources(t) {
		_, text := s.do(t, "GET", objectPath(gvr), "", "Accept", accept)
		table := metav1.Table{}
		require.NoError(t, json.Unmarshal([]byte(text), &table), text)
		require.Equal(t, "Table", table.Kind)
		for _, row := range table.Rows {
			require.Len(t, row.Cells, len(table.ColumnDefinitions), gvr)
			require.Contains(t, string(row.Object.Raw), "PartialObjectMetadata")
		}
		_, text = s.do(t, "GET", objectPath(gvr)+"?includeObject=Object", "", "Accept", accept)
		require.NotContains(t, text, "PartialObjectMetadata")
		_, text = s.do(t, "GET", objectPath(gvr), "", "Accept",
			"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
		resp, _ := s.do(t, "GET", objectPath(gvr), "", "Accept",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
		require.Equal(t, 406, resp.StatusCode, gvr)
		partial := metav1.PartialObjectMetadataList{}
		require.NoError(t, json.Unmarshal([]byte(text), &partial))
		require.Len(t, partial.Items, len(table.Rows), gvr)
	}
}

// TestVersions checks a custom resource at each version, with the conversion strategy None.
func TestVersions(t *testing.T) {
	s := start(t, flipped)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		gvr := schema.GroupVersionResource{Group: "demo.example.com", Version: version, Resource: "widgets"}
		list, err := s.dynamic(t).Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, list.Items)
		for _, item := range list.Items {
			require.Equal(t, "demo.example.com/"+version, item.GetAPIVersion())
			_, old, _ := unstructured.NestedString(item.Object, "spec", "oldOnly")
			require.False(t, old && version == "v1beta1", "its schema drops the field")
		}
	}
}

// TestRedacted checks that without Config.Secrets the server sends no secret in any format, and
// that clients can decode the answers.
func TestRedacted(t *testing.T) {
	s, found := start(t, everyKey), 0
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf",
		"application/cbor"} {
		s.ContentType, s.AcceptContentTypes = contentType, contentType
		list, err := s.typed(t).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, secret := range list.Items {
			for _, value := range secret.Data {
				require.Regexp(t, `^<redacted [0-9]+ bytes>$`, string(value))
				found++
			}
		}
	}
	require.Positive(t, found)
	s.ContentType, s.AcceptContentTypes = "", ""
	for _, gvr := range s.resources(t) {
		list, err := s.dynamic(t).Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			delete(item.Object, "data") // as above
			require.False(t, redact.NewShared().Object([]byte("/registry/x"), item.Object),
				"%s %s: something is left to redact", gvr, item.GetName())
		}
	}
}

// TestUnreadable checks that an unreadable object gives an error with its key, a warning in each
// incomplete list, and one line for the operator.
func TestUnreadable(t *testing.T) {
	s := start(t, "../../testdata/hostile/v-skip-move.db.gz")
	var path, key string
	for _, resource := range []string{"secrets", "configmaps", "pods"} {
		resp, _ := s.do(t, "GET", "/api/v1/"+resource, "")
		if warnings := resp.Header.Values("Warning"); len(warnings) > 0 {
			require.Len(t, warnings, 2)
			require.Contains(t, warnings[0], "objects that the list lacks, since they cannot be served: 1")
			require.Contains(t, warnings[1], "/registry/"+resource+"/")
			key = warnings[1][strings.Index(warnings[1], "/registry/"):]
			key = key[:strings.Index(key, `\`)]
			parts := strings.Split(key, "/")
			path = "/api/v1/namespaces/" + parts[3] + "/" + parts[2] + "/" + parts[4]
		}
	}
	require.NotEmpty(t, path)
	resp, text := s.do(t, "GET", path, "")
	require.Equal(t, 500, resp.StatusCode)
	require.Contains(t, text, key)
	require.Len(t, s.reported, 1)
	require.Contains(t, s.reported[0], key)
}

// TestAt checks that a server at an earlier revision has the objects of that time.
func TestAt(t *testing.T) {
	file, err := snapshot.Open(t.Context(), flipped, snapshot.Config{})
	require.NoError(t, err)
	defer file.Close()
	oldest, newest, err := file.Kept(t.Context())
	require.NoError(t, err)
	counts := map[int]bool{}
	for revision := oldest; revision <= newest; revision += 3 {
		r := inspect.NewReader(file, nil).At(revision)
		types, err := r.Types(t.Context())
		require.NoError(t, err)
		widgets := types.Of(schema.GroupResource{Group: "demo.example.com", Resource: "widgets"})
		if widgets == nil || widgets.CRD == nil {
			continue
		}
		list, err := startReader(t, r).dynamic(t).Resource(schema.GroupVersionResource{Group: "demo.example.com",
			Version: "v1alpha1", Resource: "widgets"}).
			List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, widgets.Objects)
		counts[len(list.Items)] = true
	}
	require.Greater(t, len(counts), 2)
}
