package inspect

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// closed opens nothing.
type closed struct{}

func (closed) Decrypt(context.Context, schema.GroupResource, []byte, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("was asked to open a value")
}

// TestUnopened: what Live yields, with no value opened; Has tells that a key is there without one either.
func TestUnopened(t *testing.T) {
	ctx := context.Background()
	s := recordedKCP(t, "root-before")
	var want []*Entry
	for e, err := range NewReader(s, nil).Live(ctx, []byte("/registry/core/")) {
		require.NoError(t, err)
		want = append(want, e)
	}
	r := NewReader(s, closed{})
	var got []*Entry
	for e, err := range r.Raw(ctx, []byte("/registry/core/")) {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Equal(t, want, got)
	require.NotEmpty(t, got)
	require.ErrorContains(t, r.Decrypt(ctx, got[0]), "was asked to open a value")
	for key, there := range map[string]bool{string(got[0].Key): true, "/registry/core/": false} {
		has, err := r.Has(ctx, []byte(key))
		require.NoError(t, err)
		require.Equal(t, there, has)
	}
}
