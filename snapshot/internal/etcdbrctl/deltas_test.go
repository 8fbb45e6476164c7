package etcdbrctl

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Nothing but the end of the list follows the events, also under a right digest.
func TestDeltasEnd(t *testing.T) {
	event := `[{"etcdEvent":{"kv":{"key":"YQ==","create_revision":3,"mod_revision":3,"version":1}}}`
	for end, sound := range map[string]bool{"]": true, "]\n": true, "": false, "}": false, "]" + event + "]": false} {
		sum := sha256.Sum256([]byte(event + end))
		d := NewDeltas(t.Context(), 2, Until{}, 1<<20)
		err := d.events(strings.NewReader(event+end+string(sum[:])), Backup{last: 3},
			func(*mvcc.Record) error { return nil })
		if sound {
			require.NoError(t, err, end)
		} else {
			require.ErrorIs(t, err, bolt.ErrDamaged, end)
		}
	}
}

// FuzzDeltas checks that any delta snapshot, with a right digest, is refused by an error or read as
// records in the order of revisions, all after that of the full snapshot.
func FuzzDeltas(f *testing.F) {
	f.Add([]byte(`[{"etcdEvent":{"kv":{"key":"YQ==","mod_revision":3}},"time":"2026-01-01T00:00:00Z"}]`))
	f.Add([]byte(`[{"etcdEvent":{"type":1,"kv":{"key":"YQ==","mod_revision":3}}},{"etcdEvent":{"kv":{}}}]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"etcdEvent":[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sum := sha256.Sum256(text)
		d := NewDeltas(t.Context(), 2, Until{}, 1<<20)
		last := d.Last
		_ = d.events(bytes.NewReader(append(text, sum[:]...)), Backup{last: 3}, func(rec *mvcc.Record) error {
			require.NotEmpty(t, rec.Key)
			require.Positive(t, rec.Revision.Compare(last))
			require.LessOrEqual(t, rec.Revision.Main, last.Main+1)
			last = rec.Revision
			return nil
		})
	})
}
