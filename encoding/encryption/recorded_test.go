package encryption

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// Encrypts agrees with the records of a whole kube-apiserver under "*.*", and Decrypt decrypts all
// encrypted records.
func TestRecordedKubeAPIServer(t *testing.T) {
	recorded, err := os.ReadFile("testdata/kube-apiserver-1.36.3.jsonl")
	require.NoError(t, err)
	by := with(t, keyed("aescbc", "key1", "a"))
	var bare []string
	for line := range bytes.Lines(recorded) {
		var record struct {
			Key, Resource string
			Value         []byte
		}
		require.NoError(t, json.Unmarshal(line, &record))
		gr := parse(record.Resource)
		_, encrypted := describe(record.Value)
		require.Equal(t, encrypted, by.Encrypts(gr), record.Key)
		if !encrypted {
			bare = append(bare, record.Resource)
		}
		plain, stale, err := by.Decrypt(t.Context(), gr, []byte(record.Key), record.Value)
		require.NoError(t, err, record.Key)
		require.False(t, stale, record.Key)
		require.Contains(t, []encoding.Format{encoding.FormatJSON, encoding.FormatProtobuf},
			encoding.Detect(plain), record.Key)
		require.Equal(t, encrypted, encoding.Detect(encrypt(t, by, gr, record.Key,
			string(plain))) == encoding.FormatEncrypted)
		if record.Resource == "events" {
			require.True(t, by.Encrypts(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}))
		}
	}
	require.Equal(t, []string{"masterleases", "peerserverleases", "ranges"}, bare)
}
