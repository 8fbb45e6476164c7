package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// benchValue returns a recorded object with managedFields, extended to 2 KB.
func benchValue(b *testing.B, name string) []byte {
	b.Helper()
	data := string(readFile(b, "cr/"+name))
	filler := strings.Repeat("x", max(0, 2048-len(data)-20))
	return []byte(strings.Replace(data, `"annotations":{`, `"annotations":{"filler":"`+filler+`",`, 1))
}

// BenchmarkReencode makes a whole migration of the bytes of one object.
func BenchmarkReencode(b *testing.B) {
	crd := readCRD(b, "crd.etcd")
	run := func(name string, data []byte, work func(obj map[string]any)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				obj, f, err := encoding.DecodeObject(data)
				require.NoError(b, err)
				work(obj)
				_, err = encoding.EncodeObject(obj, f)
				require.NoError(b, err)
			}
		})
	}
	finish := func(mode Mode) func(obj map[string]any) {
		return func(obj map[string]any) {
			_, err := crd.Begin(obj)
			require.NoError(b, err)
			crd.Relabel(obj)
			_, err = crd.Finish(obj, mode)
			require.NoError(b, err)
		}
	}
	stale, settled := benchValue(b, "untouched.before"), benchValue(b, "untouched.settled")
	clean := []byte(strings.Replace(string(stale), `"oldOnly":"bye",`, "", 1))
	run("decode and encode only", stale, func(map[string]any) {})
	run("field dropped", stale, finish(Settled))
	run("nothing dropped", clean, finish(Settled))
	run("pure", clean, finish(Pure))
	run("already settled", settled, finish(Settled))
	run("managed fields", clean, func(obj map[string]any) {
		finish(Settled)(obj)
		changed, _, err := crd.RelabelManagedFields(obj, false)
		require.NoError(b, err)
		require.Equal(b, 1, changed)
	})
}
