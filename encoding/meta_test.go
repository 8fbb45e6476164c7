package encoding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// fullMeta returns the metadata of every object in testdata/k8s.
func fullMeta(apiVersion, kind string) encoding.Meta {
	yes := true
	return encoding.Meta{
		APIVersion: apiVersion, Kind: kind,
		Name: "nameValue", Namespace: "namespaceValue", UID: "uidValue", Generation: 7,
		CreationTimestamp: time.Date(2008, 1, 1, 1, 1, 1, 0, time.UTC),
		DeletionTimestamp: time.Date(2009, 1, 1, 1, 1, 1, 0, time.UTC),
		Labels:            map[string]string{"labelsKey": "labelsValue"},
		Annotations:       map[string]string{"annotationsKey": "annotationsValue"},
		Finalizers:        []string{"finalizersValue"},
		OwnerReferences: []encoding.OwnerReference{{
			APIVersion: "apiVersionValue", Kind: "kindValue", Name: "nameValue", UID: "uidValue",
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}

func TestReadMetaInEveryFormat(t *testing.T) {
	asJSON := compact(t, stored(t, "k8s/apps.v1.DaemonSet.json"))
	obj, _, err := encoding.DecodeObject(asJSON)
	require.NoError(t, err)
	asCBOR, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"protobuf":     stored(t, "k8s/apps.v1.DaemonSet.pb"),
		"JSON":         asJSON,
		"JSON, spaced": stored(t, "k8s/apps.v1.DaemonSet.json"),
		"CBOR":         asCBOR,
	} {
		m, err := encoding.ReadMeta(data)
		require.NoError(t, err, name)
		require.Equal(t, fullMeta("apps/v1", "DaemonSet"), m, name)
		require.Equal(t, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), m.GVK(), name)
	}
}

// The metadata of any kind is read, even of kinds unknown to this build.
func TestReadMetaOfEveryKind(t *testing.T) {
	for name, empty := range natives() {
		data := stored(t, "k8s/"+name+".pb")
		m, err := encoding.ReadMeta(data)
		require.NoError(t, err, name)
		require.Equal(t, fullMeta(m.APIVersion, m.Kind), m, name)
		obj := decode(t, data, empty())
		require.Equal(t, string(obj.GetUID()), m.UID)
		require.True(t, obj.GetCreationTimestamp().Time.Equal(m.CreationTimestamp))
	}
	m, err := encoding.ReadMeta(wrap(t, "example.com/v7", "FromTheFuture", &corev1.ConfigMap{}))
	require.NoError(t, err)
	require.Equal(t, encoding.Meta{APIVersion: "example.com/v7", Kind: "FromTheFuture"}, m)
	require.Equal(t, schema.GroupVersionKind{Group: "example.com", Version: "v7", Kind: "FromTheFuture"}, m.GVK())
}

func TestReadMetaWithoutMetadata(t *testing.T) {
	for _, data := range []string{
		"k8s\x00\x12\x00", `{}`, `{"metadata":null}`, "\xd9\xd9\xf7\xa0",
		`{"metadata":{"creationTimestamp":null,"labels":{},"finalizers":[],"ownerReferences":null,"annotations":null,` +
			`"uid":null}}`,
	} {
		m, err := encoding.ReadMeta([]byte(data))
		require.NoError(t, err, "%q", data)
		require.Equal(t, encoding.Meta{}, m, "%q", data)
	}
}

func TestReadMetaErrorsNameThePath(t *testing.T) {
	for data, want := range map[string]string{
		`{"metadata":5}`:                  "JSON value: metadata: not an object",
		`{"metadata":{"name":1}}`:         "JSON value: metadata.name: not a string",
		`{"metadata":{"generation":"1"}}`: "JSON value: metadata.generation: not a whole number",
		`{"metadata":{"generation":1.5}}`: "JSON value: metadata.generation: not a whole number",
		`{"metadata":{"creationTimestamp":"tomorrow"}}`: "JSON value: metadata.creationTimestamp: not an " +
			"RFC 3339 time",
		`{"metadata":{"labels":[]}}`:          "JSON value: metadata.labels: not an object",
		`{"metadata":{"labels":{"a":1}}}`:     `JSON value: metadata.labels["a"]: not a string`,
		`{"metadata":{"finalizers":["a",1]}}`: "JSON value: metadata.finalizers[1]: not a string",
		`{"metadata":{"ownerReferences":[{},1]}}`: "JSON value: metadata.ownerReferences[1]: " +
			"not an object",
		`{"metadata":{"ownerReferences":[{},{"uid":[]}]}}`: "JSON value: metadata.ownerReferences[1].uid: " +
			"not a string",
		`{"metadata":{"ownerReferences":[{"controller":"x"}]}}`: "JSON value: metadata.ownerReferences[0].controller: not true or false",
		"k8s\x00":                          "protobuf value: envelope: holds no object",
		"\xd9\xd9\xf7\xa1\x48metadata\x01": "CBOR value: metadata: not an object",
		"k8s\x00\x12\x03\x0a\x05a": "protobuf value: field 1 at byte 0: the field ends beyond " +
			"its message",
		"k8s\x00\x12\x02\x08\x05": "protobuf value: metadata: field 1 at byte 0: wire type 0, want " +
			"length-delimited",
		"k8s\x00\x12\x04\x0a\x02\x0a\x09": "protobuf value: metadata: field 1 at byte 0: the field ends " +
			"beyond its message",
		"k8s\x00\x12\x04\x0a\x02\x38\x80": "protobuf value: metadata: field 7 at byte 0: the field ends " +
			"beyond its message",
		"k8s\x00\x12\x05\x0a\x03\x3a\x01\x00": "protobuf value: metadata.generation: field 7 at byte 0: wire " +
			"type 2, want varint",
		"k8s\x00\x12\x06\x0a\x04\x6a\x02\x22\x05": "protobuf value: metadata.ownerReferences[0]: field 4 at byte 0: " +
			"the field ends beyond its message",
		"k8s\x00\x12\x06\x0a\x04\x6a\x02\x20\x05": "protobuf value: metadata.ownerReferences[0].uid: field 4 at byte " +
			"0: wire type 0, want length-delimited",
		"k8s\x00\x12\x06\x0a\x04\x5a\x02\x08\x05": "protobuf value: metadata.labels: field 1 at byte 0: wire type 0, " +
			"want length-delimited",
		"k8s\x00\x12\x06\x0a\x04\x42\x02\x0a\x00": "protobuf value: metadata.creationTimestamp.seconds: field 1 at " +
			"byte 0: wire type 2, want varint",
	} {
		_, err := encoding.ReadMeta([]byte(data))
		require.EqualError(t, err, want, "%q", data)
	}
}

// A value cut anywhere is an error. A protobuf value may lose the two empty strings after the
// object.
func TestTruncatedValues(t *testing.T) {
	for _, name := range []string{"k8s/apps.v1.DaemonSet.pb", "k8s/core.v1.ConfigMap.pb",
		"cr/put-beta.after", "c1.cbor"} {
		data := stored(t, name)
		for n := range len(data) - 1 {
			_, err := encoding.ReadMeta(data[:n:n])
			if encoding.Detect(data) == encoding.FormatProtobuf && (n == len(data)-4 || n == len(data)-2) {
				require.NoError(t, err, "%s cut at %d", name, n)
				continue
			}
			require.Error(t, err, "%s cut at %d", name, n)
		}
	}
}

// Times are read like metav1.Time: the zero time is an empty message, nanoseconds are dropped.
func TestTimes(t *testing.T) {
	for _, want := range []time.Time{{}, time.Unix(0, 0).UTC(), time.Date(1960, 2, 3, 4, 5, 6, 0, time.UTC)} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(want)}}
		m, err := encoding.ReadMeta(wrap(t, "v1", "ConfigMap", obj))
		require.NoError(t, err)
		require.Equal(t, want, m.CreationTimestamp)
	}
	m, err := encoding.ReadMeta([]byte(`{"metadata":{"creationTimestamp":"2026-11-20T20:00:00.5+02:00"}}`))
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC), m.CreationTimestamp)
}
