package pattern

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNew(t *testing.T) {
	number := New(`^[0-9]+$`)
	require.True(t, number().MatchString("12"))
	require.Same(t, number(), number())
	wrong := New(`(`) // not compiled yet
	require.Panics(t, func() { wrong() })
}
