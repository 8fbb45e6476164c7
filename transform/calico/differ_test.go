package calico

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/snapshot"
)

func FuzzDifferEnv(f *testing.F) {
	files, err := filepath.Glob("../../encoding/testdata/k8s/*")
	require.NoError(f, err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	for _, file := range []string{"kubectl/all", "calico/before"} {
		s, err := snapshot.Open(f.Context(), "../../testdata/"+file+".db.gz", snapshot.Config{})
		require.NoError(f, err)
		for r, err := range s.Live(f.Context(), nil) {
			require.NoError(f, err)
			if _, err := encoding.ReadWorkload(r.Value); err == nil {
				f.Add(bytes.Clone(r.Value))
			}
		}
	}
	for _, text := range []string{
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1,"annotations":{}},"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"A","valueFrom":{}}]}]}}}}`,
		`{"apiVersion":"extensions/v1beta1","kind":"DaemonSet","metadata":{"generation":1,"annotations":{}},"spec":{"templateGeneration":7,"template":{"spec":{"initContainers":[{"name":"b"},{"env":[{"name":"B"}]}],"containers":[{"name":"a","env":[{"value":"A","name":"A"}]}]}}}}`,
		"k8s\x00\x0a\x14\x0a\x07apps/v1\x12\x09DaemonSet\x12\x0b\x0a\x00\x12\x07\x12\x05\x12\x03\x12\x01c",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if encoding.Detect(data) == encoding.FormatJSON && bytes.Contains(data, []byte("null")) {
			return
		}
		for _, name := range []string{"A", "nameValue", "PATH"} {
			for _, value := range []string{"b", ""} {
				old, oldChanged, oldErr := encoding.SetPodTemplateEnv(data, name, value)
				now, changed, err := setPodEnv(data, name, value)
				if oldErr != nil {
					continue
				}
				require.NoError(t, err)
				require.Equal(t, oldChanged, changed)
				if !bytes.Equal(old, now) {
					require.Equal(t, string(old), string(now))
				}
				if len(changed) == 0 {
					require.Same(t, &data[0], &now[0])
				}
			}
		}
	})
}
