package snapshot

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSmoke will go.
func TestSmoke(t *testing.T) {
	ctx := context.Background()
	s := open(t, copyOf(t, built(t, story)))
	out := filepath.Join(t.TempDir(), "out.db")
	c := put("/leased2", "x")
	c.Lease = 99
	_, err := Write(ctx, out, s, seq(c), WriteConfig{Leases: []Lease{{99, 60}, {5, 7}}})
	require.NoError(t, err)
	sound(t, out)
	sameAsRestored(t, out, nil)
	l, err := open(t, out).Leases(ctx)
	require.NoError(t, err)
	require.Equal(t, map[int64]int64{77: 3600, 99: 60, 5: 7}, l)

	out2 := filepath.Join(t.TempDir(), "out2.db")
	res, err := Write(ctx, out2, open(t, out), planned(t, open(t, out), put("/a", "a2"), del("/leased")), WriteConfig{Scrub: func(k []byte) bool { return string(k) == "/leased" }})
	require.NoError(t, err)
	fmt.Println(res)
	sound(t, out2)
	for err := range Verify(ctx, open(t, out2)) {
		require.NoError(t, err)
	}
	sameAsRestored(t, out2, nil)

	out3 := filepath.Join(t.TempDir(), "out3.db")
	o2 := open(t, out2)
	res, err = Build(ctx, out3, Content{Revision: 1000, Leases: []Lease{{99, 60}}, Notes: map[string][]byte{"a": []byte("b")}, Records: func(yield func(*Record, error) bool) {
		o2.Live(ctx, []byte("/"))(yield)
	}}, nil)
	require.NoError(t, err)
	fmt.Println(res)
	sound(t, out3)
	for err := range Verify(ctx, open(t, out3)) {
		require.NoError(t, err)
	}
	sameAsRestored(t, out3, nil)
	b, err := open(t, out3).Note(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "b", string(b))
}
