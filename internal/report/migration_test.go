package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/transform"
)

// TestParseMigration checks that the parts shown on a page are kept, with only the length of other
// lists, that an unknown level becomes an error, and that credentials in reasons are redacted.
func TestParseMigration(t *testing.T) {
	m, err := parseMigration(
		[]byte(`{"apiVersion":"etcdshift/v1","kind":"Report","command":"migrate x","outcome":"refused",
		"input":{"sha256":"a"},"kinds":[{"kind":"K","migrated":2}],"uids":[{"kind":"a"},{"kind":[1,[2]]},7],"renamed":[],"saved":{"k":[1]},
		"problems":[{"key":"k","code":"c","level":"odd","reason":"password=hunter2hunter2"},{"code":"d","level":"warning"}],"steps":["one"],
		"error":"password=hunter2hunter2","restore":["etcdutl snapshot restore out.db --initial-cluster-token new"]}`),
		redact.NewShared())
	require.NoError(t, err)
	require.Equal(t, transform.Refused, m.Outcome)
	require.Equal(t, []Length{{"uids", 3}}, m.Lists)
	require.Equal(t, []string{"one"}, m.Steps)
	require.Equal(t, 2, m.Kinds[0].Migrated)
	require.Equal(t, []finding.Level{finding.Error, finding.Warning},
		[]finding.Level{m.Problems[0].Level, m.Problems[1].Level})
	require.NotContains(t, m.Problems[0].Reason+m.Error, "hunter2")
	require.Equal(t, "etcdutl snapshot restore out.db --initial-cluster-token new", m.Restore[0])

	deep := `{"apiVersion":"etcdshift/v1","kind":"Report","command":"c","x":` + strings.Repeat("[", 1e5) +
		strings.Repeat("]", 1e5) + `}`
	for _, text := range []string{"", "[]", "null", "{}", `{"kind":"Report"}`,
		`{"apiVersion":"etcdshift/v2","kind":"Report","command":"c"}`, deep,
		`{"apiVersion":"etcdshift/v1","kind":"Report","command":"c","steps":7}`} {
		_, err := parseMigration([]byte(text), redact.NewShared())
		require.ErrorIs(t, err, ErrNoMigration, "%.80s", text)
	}
}
