package native_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestEncode checks that native objects of real servers are encoded unchanged, and that after
// changing labels, only the labels differ.
func TestEncode(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.db.gz")
	require.NoError(t, err)
	encoded := 0
	for _, file := range files {
		if dir := filepath.Base(filepath.Dir(file)); dir == "hostile" || dir == "reports" &&
			filepath.Base(file) != "base.db.gz" {
			continue // not written by a server
		}
		s, err := snapshot.Open(t.Context(), file, snapshot.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for e, err := range inspect.NewReader(s, nil).Live(t.Context(), nil) {
			require.NoError(t, err)
			v, err := e.ParseValue()
			if err != nil || v.Format != encoding.FormatProtobuf || !native.Known(v.GVK) {
				continue
			}
			content, err := native.DecodeParsed(v)
			require.NoError(t, err, "%s", e.Key)
			same, err := native.Encode(v, content)
			require.NoError(t, err, "%s %s", file, e.Key)
			if string(v.Raw) != string(same) { // an older server wrote a CSINode without a status
				require.Equal(t, string(v.Raw)+"\x1a\x00", string(same), "%s", e.Key)
			}

			metadata, _ := content["metadata"].(map[string]any)
			if metadata == nil {
				continue // a RangeAllocation from the start of a server
			}
			metadata["labels"] = map[string]any{"changed": "yes"}
			raw, err := native.Encode(v, content)
			require.NoError(t, err, "%s", e.Key)
			value, err := encoding.WithMessage(e.Value, raw)
			require.NoError(t, err)
			got, err := native.Decode(value)
			require.NoError(t, err)
			require.Equal(t, content, got, "%s", e.Key)
			encoded++
		}
	}
	require.Greater(t, encoded, 300)
}

func TestEncodeRefuses(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	value := wrap(t, corev1.SchemeGroupVersion.WithKind("Pod"), pod)
	for name, test := range map[string]struct {
		change func(spec map[string]any)
		want   string
	}{
		"a field of no Pod": {func(spec map[string]any) { spec["nodename"] = "n2" },
			"spec.nodename: the kind has no such field"},
		"text for a number": {func(spec map[string]any) { spec["priority"] = "s3cret" },
			"spec.priority: a field has a value that its type can't have"},
		"beyond 32 bits": {func(spec map[string]any) { spec["priority"] = int64(99999999999) },
			"spec.priority: a field has a value that its type can't have"},
		"a list for an object": {func(spec map[string]any) { spec["securityContext"] = []any{} },
			"spec.securityContext"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := encoding.Parse(value)
			require.NoError(t, err)
			content, err := native.DecodeParsed(v)
			require.NoError(t, err)
			test.change(content["spec"].(map[string]any))
			_, err = native.Encode(v, content)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "s3cret")
			require.NotErrorIs(t, err, native.ErrUnknownFields)
		})
	}
}

// TestEncodeBytes checks that the error does not quote the plain text of a Secret.
func TestEncodeBytes(t *testing.T) {
	v, err := encoding.Parse(wrap(t, corev1.SchemeGroupVersion.WithKind("Secret"), &corev1.Secret{}))
	require.NoError(t, err)
	content, err := native.DecodeParsed(v)
	require.NoError(t, err)
	content["data"] = map[string]any{"password": "pl@in text"}
	_, err = native.Encode(v, content)
	require.ErrorContains(t, err, "not base64; plain text of a Secret goes into stringData")
	require.NotContains(t, err.Error(), "pl@in")
}

// TestEncodeKeepsUnknownFields checks that a field of a newer Kubernetes refuses the write.
func TestEncodeKeepsUnknownFields(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}}
	value := wrap(t, corev1.SchemeGroupVersion.WithKind("Secret"), runtime.Object(secret))
	v, err := encoding.Parse(value)
	require.NoError(t, err)
	raw := protowire.AppendString(protowire.AppendTag(v.Raw, 99, protowire.BytesType), "of a newer server")
	value, err = encoding.WithMessage(value, raw)
	require.NoError(t, err)
	v, err = encoding.Parse(value)
	require.NoError(t, err)
	content, err := native.DecodeParsed(v)
	require.NoError(t, err)
	_, err = native.Encode(v, content)
	require.ErrorIs(t, err, native.ErrUnknownFields)
}
