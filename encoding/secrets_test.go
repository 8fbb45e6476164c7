package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsKeepSecrets checks that an error gives the position of a fault, never the text there.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, broken := range []string{`{"data":{"a":Zm9v}}`, `{"data":"Zm9v`, `{"data":{"a":"x"}Z}`,
		`{"data":9e999}`, `{"a" Z}`} {
		_, _, err := DecodeObject([]byte(broken))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "Z")
		require.NotContains(t, err.Error(), "9e999")
	}
}
