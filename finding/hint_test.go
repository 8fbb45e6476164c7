package finding

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHint checks that the outermost hint counts, and the first of joined errors; below an empty
// hint, the hint of the wrapped error counts.
func TestHint(t *testing.T) {
	try := WithHint(errors.New("slow"), "try again")
	other := WithLasting(errors.New("damaged"), "take another copy")
	require.EqualError(t, try, "slow")
	for _, is := range []struct {
		err     error
		hint    string
		lasting bool
	}{
		{nil, "", false},
		{errors.New("x"), "", false},
		{fmt.Errorf("x: %w", try), "try again", false},
		{fmt.Errorf("%w: %w", other, try), "take another copy", true},
		{errors.Join(errors.New("x"), try, other), "try again", true},
		{WithHint(try, ""), "try again", false},
		{WithHint(other, "name it"), "name it", true},
	} {
		require.Equal(t, is.hint, Hint(is.err), "%v", is.err)
		require.Equal(t, is.lasting, Lasting(is.err), "%v", is.err)
	}
	require.ErrorIs(t, fmt.Errorf("x: %w", try), try)
	require.NotErrorIs(t, try, other)
}
