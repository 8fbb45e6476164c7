package get

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestWrite checks that objects written without their content have the text of their redacted
// content, that most protobuf objects are written so, and that other output decodes them.
func TestWrite(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/*/*.db.gz")
	require.NoError(t, err)
	written, stored := 0, 0
	for _, path := range paths {
		s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
		if err != nil { // hostile
			continue
		}
		w, n := testWrite(t, s)
		written, stored = written+w, stored+n
		require.NoError(t, s.Close())
	}
	require.Greater(t, written, stored*4/5)
}

// testWrite returns the numbers of objects written, and of objects in protobuf outside credentials.
func testWrite(t *testing.T, s *snapshot.Snapshot) (written, stored int) {
	r := inspect.NewReader(s, nil)
	types, err := r.Types(t.Context())
	if err != nil {
		return 0, 0
	}
	hide, err := r.Secrets(t.Context())
	require.NoError(t, err)
	list := render.NewObjects(io.Discard, "json")
	p := &printer{finder: &finder{ctx: t.Context(), reader: r, hide: hide,
		Options: Options{Format: "json", Selector: objects.Everything()}}}
	for _, kind := range types.All() {
		for e, err := range r.Entries(t.Context(), kind, inspect.Selection{}) {
			if err != nil {
				break
			}
			quick, slow := &gotten{Object: inspect.Undecoded(kind, e)}, &gotten{Object: inspect.Undecoded(kind, e)}
			if _, is := quick.Protobuf(); is && kind.Kind != "Secret" && kind.Kind != "ConfigMap" {
				stored++
			}
			if !p.write(quick) {
				continue
			}
			written++
			require.True(t, p.prepare(slow), string(e.Key))
			want, err := list.Encode(slow.Content)
			require.NoError(t, err)
			require.False(t, slow.hidden, string(e.Key))
			require.Equal(t, string(want), string(quick.text), string(e.Key))
			p.ManagedFields = true
			require.False(t, p.write(&gotten{Object: inspect.Undecoded(kind, e)}))
			p.ManagedFields = false
		}
	}
	return written, stored
}
