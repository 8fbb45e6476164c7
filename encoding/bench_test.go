package encoding_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/encoding"
)

// fourKB returns a protobuf value of 4 KB with owner references and managed fields.
func fourKB(b *testing.B) []byte {
	obj := decode(b, stored(b, "k8s/core.v1.ConfigMap.pb"), natives()["core.v1.ConfigMap"]()).(*corev1.ConfigMap)
	owned(obj, "uid-1", managedBefore)
	obj.Data["text"] = strings.Repeat("x", 3480)
	data := wrap(b, "v1", "ConfigMap", obj)
	require.InDelta(b, 4096, len(data), 200)
	return data
}

func BenchmarkReadMeta(b *testing.B) {
	data := fourKB(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encoding.ReadMeta(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadMetaJSON(b *testing.B) {
	data := stored(b, "cr/put-beta.after")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encoding.ReadMeta(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeObject(b *testing.B) {
	data := stored(b, "cr/put-beta.after")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := encoding.DecodeObject(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeObject(b *testing.B) {
	data := stored(b, "cr/put-beta.after")
	obj, format, err := encoding.DecodeObject(data)
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encoding.EncodeObject(obj, format); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEditOwnerReferences(b *testing.B) {
	for name, edit := range map[string]func(encoding.OwnerReference) (encoding.OwnerReference,
		bool){"changed": moveOwner, "unchanged": keepOwner} {
		b.Run(name, func(b *testing.B) {
			data := fourKB(b)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := encoding.EditOwnerReferences(data, edit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEditOwnerReferencesJSON(b *testing.B) {
	data := stored(b, "cr/put-beta.after")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := encoding.EditOwnerReferences(data, keepOwner); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGlance reads metadata in one pass.
func BenchmarkGlance(b *testing.B) {
	obj := &corev1.ConfigMap{Data: map[string]string{"text": strings.Repeat("x", 200)}}
	obj.Name, obj.Namespace, obj.Annotations = "settings", "default", map[string]string{"kcp.io/cluster": "root"}
	for name, data := range map[string][]byte{"JSON": stored(b, "cr/put-beta.after"),
		"protobuf": wrap(b, "v1", "ConfigMap", obj)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var g encoding.Glance
			for b.Loop() {
				if !g.Glance(data) {
					b.Fatal("it has to be decoded")
				}
			}
		})
	}
}
