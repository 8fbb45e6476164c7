package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsRedacted checks that only the exact form counts as redacted: a Secret value with the same
// end is hidden.
func TestIsRedacted(t *testing.T) {
	for _, text := range []string{"<redacted>", redacted(0), redacted(12)} {
		require.True(t, isRedacted(text), text)
	}
	for _, text := range []string{"", ">", " 12 bytes>", "<redacted 12 bytes", "<redacted  bytes>",
		"<redacted x bytes>", "a<redacted>"} {
		require.False(t, isRedacted(text), text)
	}
}
