package encoding

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const glanced = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"a":"b\u003cé",` +
	`"kcp.io/cluster":"root"},` +
	`"creationTimestamp":"2026-05-01T00:00:00Z","finalizers":["f"],"generation":5,"labels":{"tier":"backend"},` +
	`"managedFields":[{"apiVersion":"example.com/v1","fieldsV1":{"f:spec":{"f:color":{}}},"manager":"m"},` +
	`{"apiVersion":"example.com/v2"}],` +
	`"name":"w","namespace":"team","ownerReferences":[{"apiVersion":"apps/v1","controller":true,"kind":"ReplicaSet",` +
	`"name":"r","uid":"u-1"},` +
	`{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u-2"}],"uid":"1a30f8e7"},"spec":{"list":[267,-0.5e+3,null,` +
	`true,"x\\y"],"n":{}}}` + "\n"

// TestGlance compares Glance with the decoders, for a value and for many damaged values.
func TestGlance(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "w", Namespace: "team", UID: "1a30f8e7", Generation: 3, CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u-1",
			Controller: new(true)}},
	}}
	message, err := pod.Marshal()
	require.NoError(t, err)
	require.True(t, new(Glance).GlanceJSON([]byte(glanced)))
	require.True(t, new(Glance).GlanceMessage(message))

	wrap := func(message []byte) []byte {
		typeMeta := appendBytesField(appendBytesField(nil, typeMetaAPIVersion, []byte("v1")),
			typeMetaKind, []byte("Pod"))
		return appendBytesField(appendBytesField([]byte(protobufPrefix), unknownTypeMeta, typeMeta),
			unknownRaw, message)
	}
	random, sure := rand.New(rand.NewPCG(1, 2)), 0
	for range 60_000 {
		if text := damaged(random, []byte(glanced)); requireGlance(t, text, (*Glance).GlanceJSON, text) {
			sure++
		}
		raw := damaged(random, message)
		if g := new(Glance); g.GlanceMessage(raw) {
			require.Equal(t, len(g.Owners) > 0, HasOwners(raw), "%q", raw)
		}
		if requireGlance(t, raw, (*Glance).GlanceMessage, wrap(raw)) {
			sure++
		}
		if value := damaged(random, wrap(message)); requireGlance(t, value, (*Glance).Glance, value) {
			sure++
		}
	}
	require.Greater(t, sure, 20_000)
}

// requireGlance compares one glance, if Glance returns true, with decoders of the value.
func requireGlance(t *testing.T, data []byte, look func(*Glance, []byte) bool, value []byte) bool {
	var g Glance
	if !look(&g, data) {
		return false
	}
	m, err := ReadMeta(value)
	require.NoError(t, err, "%q", value)
	_, err = Parse(value)
	require.NoError(t, err, "%q", value)
	require.True(t, m.DeletionTimestamp.IsZero(), "%q", value)
	want := []string{m.Name, m.Namespace, m.UID}
	is := []string{string(g.Name), string(g.Namespace), string(g.UID)}
	for _, o := range m.OwnerReferences {
		want = append(want, o.APIVersion, o.Kind, o.UID, fmt.Sprint(o.Controller != nil && *o.Controller))
	}
	for _, o := range g.Owners {
		is = append(is, string(o.APIVersion), string(o.Kind), string(o.UID), fmt.Sprint(o.Controller))
	}
	if g.APIVersion != nil {
		type managed struct {
			Metadata struct {
				ManagedFields []struct {
					APIVersion string `json:"apiVersion"`
				} `json:"managedFields"`
			} `json:"metadata"`
		}
		fields, err := FieldsOf[managed]().Decode(value)
		require.NoError(t, err, "%q", value)
		var versions []string
		for _, entry := range fields.Metadata.ManagedFields {
			versions = append(versions, entry.APIVersion)
		}
		want = append(append(want, m.APIVersion, m.Kind), slices.Compact(versions)...)
		is = append(is, string(g.APIVersion), string(g.Kind))
		for _, version := range g.Managed {
			is = append(is, string(version))
		}
	}
	require.Equal(t, want, is, "%q", value)
	if g.APIVersion != nil && !g.Odd {
		requireEven(t, &g, value)
	}
	annotations := map[string]string{}
	for _, a := range g.Annotations {
		annotations[string(a.Name)] = string(a.Value)
		if a.Value == nil {
			annotations[string(a.Name)] = m.Annotations[string(a.Name)]
		}
	}
	require.Len(t, annotations, len(m.Annotations), "%q", value)
	require.Subset(t, m.Annotations, annotations, "%q", value)
	return true
}

// requireEven requires that a value without Odd can be decoded, and its metadata converted.
func requireEven(t *testing.T, g *Glance, value []byte) {
	obj, _, err := DecodeObject(value)
	require.NoError(t, err, "%q", value)
	var spec any
	if g.Spec != nil {
		require.NoError(t, unmarshal(g.Spec, &spec), "%q", value)
	}
	require.Equal(t, obj["spec"], spec, "%q", value)
	metadata := obj["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, new(metav1.ObjectMeta)), "%q",
		value)
}

// damaged changes, drops, doubles or moves some bytes.
func damaged(random *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	for range 1 + random.IntN(3) {
		at := random.IntN(len(data))
		to := min(len(data), at+1+random.IntN(12))
		switch random.IntN(6) {
		case 0:
			data[at] = byte(random.IntN(256))
		case 1:
			data[at] = "\"\\{}[],:0e-nt u"[random.IntN(15)]
		case 2:
			data = slices.Delete(data, at, to)
		case 3:
			data = slices.Insert(data, at, data[at:to]...)
		case 4:
			other := random.IntN(len(data))
			data[at], data[other] = data[other], data[at]
		default:
			data = slices.Insert(data, random.IntN(len(data)), data[at:to]...)
		}
		if len(data) == 0 {
			return []byte("{}")
		}
	}
	return data
}
