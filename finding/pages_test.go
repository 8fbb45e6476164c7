package finding

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPages: each paragraph of each page is known.
func TestPages(t *testing.T) {
	all, err := pages.ReadDir("codes")
	require.NoError(t, err)
	for _, file := range all {
		page, err := pages.ReadFile("codes/" + file.Name())
		require.NoError(t, err)
		c := &Code{Name: strings.TrimSuffix(file.Name(), ".md")}
		if err := c.read(string(page)); err != nil {
			t.Error(err)
		}
	}
	c := &Code{Name: "odd"}
	require.EqualError(t, c.read("# error: odd\n\nIt is odd.\n\nRemdy: none.\n"),
		`finding/codes/odd.md: no text begins with "Remdy": see Lookup`)
	require.Equal(t, "It is odd.", c.Meaning)
}
