package cli

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "7B": 7, "5k": 5000, "5kB": 5000, "5KB": 5000, "5Ki": 5 << 10, "5KiB": 5 << 10,
		"500MB": 500_000_000, "500M": 500_000_000,
		"20GiB": 20 << 30, "20Gi": 20 << 30, "20gib": 20 << 30, "2TiB": 2 << 40, "2T": 2_000_000_000_000,
		"9223372036854775807": math.MaxInt64,
	} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "0GiB", "GiB", "-1", "-1GiB", "1.5GiB", "1GG", "1iB", "1bb", "1 GiB", "1e3",
		"0x10", "20Gib i", "1P", "９", "9223372036854775808", "9223372036854775807KiB", "8388608TiB", "99999999999TB"} {
		_, err := parseSize(text)
		require.ErrorContains(t, err, text)
	}
}
