package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only what redacted writes counts as redacted already: a Secret value that ends like it is hidden as any other.
func TestIsRedacted(t *testing.T) {
	for _, text := range []string{"<redacted>", redacted(0), redacted(12)} {
		require.True(t, isRedacted(text), text)
	}
	for _, text := range []string{"", ">", " 12 bytes>", "<redacted 12 bytes", "<redacted  bytes>", "<redacted x bytes>", "a<redacted>"} {
		require.False(t, isRedacted(text), text)
	}
}
