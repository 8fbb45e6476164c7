package codedoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsError(t *testing.T) {
	for level, want := range map[string]bool{
		"error":   true,
		"warning": false,
		"error where it is so; warning elsewhere":                      true,
		"error in `migrate a`":                                         true,
		"error in `migrate b`":                                         false,
		"error in `migrate b`;\n  warning in `migrate a`":              false,
		"warning in `migrate b`; error in `migrate a`":                 true,
		"error in `migrate b` and `migrate a`; warning in `migrate c`": true,
		"warning; error in `migrate b`":                                false,
		"error; warning with `--conflicts`":                            true,
		"error in `cluster c`":                                         false,
		"warning in `migrate a`; error in `cluster c`":                 false,
		"error that `--allow` does not take in `migrate a`":            false,
	} {
		section := "- **Level:** " + level + "\n- **Means:** an error\n"
		require.Equal(t, want, isError(section, "migrate a"), level)
	}
}
