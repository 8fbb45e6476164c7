package cli

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
)

// closed returns the properties allowed by sarif-schema-2.1.0.json for the objects in our output,
// by path with [] for elements; the schema closes each object. A star marks required properties.
func closed() map[string]string {
	return map[string]string{
		"":                                "$schema *version *runs",
		"runs[]":                          "*tool artifacts results columnKind",
		"runs[].tool":                     "*driver",
		"runs[].tool.driver":              "*name version informationUri rules",
		"runs[].tool.driver.rules[]":      "*id shortDescription help defaultConfiguration",
		"runs[].tool.driver.rules[].help": "*text",
		"runs[].artifacts[]":              "location length hashes",
		"runs[].artifacts[].location":     "uri index",
		"runs[].results[]":                "ruleId ruleIndex level *message locations properties",
		"runs[].results[].message":        "*text",
		"runs[].results[].locations[]":    "physicalLocation logicalLocations",
		"runs[].results[].properties":     "objects",
		"runs[].tool.driver.rules[].shortDescription":                    "*text",
		"runs[].tool.driver.rules[].defaultConfiguration":                "level",
		"runs[].results[].locations[].physicalLocation":                  "artifactLocation",
		"runs[].results[].locations[].logicalLocations[]":                "fullyQualifiedName kind",
		"runs[].results[].locations[].physicalLocation.artifactLocation": "uri index",
	}
}

// checkClosed checks a document recursively.
func checkClosed(t *testing.T, path string, value any) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			checkClosed(t, path+"[]", element)
		}
	case map[string]any:
		if strings.HasSuffix(path, ".hashes") {
			return
		}
		allowed, known := closed()[path]
		require.True(t, known, "no object is expected at %q", path)
		for _, name := range strings.Fields(allowed) {
			if must, is := strings.CutPrefix(name, "*"); is {
				require.Contains(t, value, must, path)
			}
		}
		for name, inner := range value {
			require.Contains(t, strings.Fields(strings.ReplaceAll(allowed, "*", "")), name, path)
			checkClosed(t, strings.TrimPrefix(path+"."+name, "."), inner)
		}
	}
}

// TestSARIF: the output obeys SARIF 2.1.0's schema.
func TestSARIF(t *testing.T) {
	code := func(name string) *finding.Code { return finding.Named(doctor.Codes(), name) }
	many := &finding.Report{Findings: []finding.Finding{
		{Code: code("orphans"), Level: finding.Warning, Key: "/registry/a b/\x1b\xff", Reason: "m", Objects: 3},
		{Code: code("bump-revision"), Level: finding.Info, Reason: "m"},
	}}
	for _, tc := range []struct {
		in     inputInfo
		report *finding.Report
		uri    string
		levels []any
	}{
		{inputInfo{Path: "dir/in %.db"}, doctor.Damaged(errors.New("broken"), doctor.Options{}), "dir/in%20%25.db",
			[]any{"error"}},
		{inputInfo{Path: "/a b/in.db", Bytes: 9, SHA256: strings.Repeat("0", 64)}, many, "file:///a%20b/in.db",
			[]any{"warning", "note"}},
		{inputInfo{Path: "in:put.db"}, &finding.Report{}, "./in:put.db", []any{}},
	} {
		text, err := json.Marshal(toSARIF(tc.in, doctor.Codes(), tc.report))
		require.NoError(t, err)
		var document any
		require.NoError(t, json.Unmarshal(text, &document))
		checkClosed(t, "", document)
		require.Equal(t, "2.1.0", field(document, "version"))
		run := field(document, "runs.0")
		require.Contains(t, []any{"utf16CodeUnits", "unicodeCodePoints"}, field(run, "columnKind"))
		require.GreaterOrEqual(t, field(run, "artifacts.0.length"), -1.0)
		require.Equal(t, tc.uri, field(run, "artifacts.0.location.uri"))
		_, err = url.Parse(tc.uri)
		require.NoError(t, err)
		rules, ids, levels := field(run, "tool.driver.rules").([]any), map[any]bool{}, []any{}
		for _, rule := range rules {
			ids[field(rule, "id")] = true
			require.Contains(t, []any{"error", "warning", "note"}, field(rule, "defaultConfiguration.level"))
			require.NotEmpty(t, field(rule, "help.text"))
		}
		require.Len(t, ids, len(rules))
		for _, r := range field(run, "results").([]any) { // a list, not null: the code was checked
			levels = append(levels, field(r, "level"))
			require.Equal(t, field(r, "ruleId"), field(rules[int(field(r, "ruleIndex").(float64))], "id"))
			require.NotEmpty(t, field(r, "message.text"))
			require.Len(t, field(r, "locations"), 1)
			require.Zero(t, field(r, "locations.0.physicalLocation.artifactLocation.index"))
		}
		require.Equal(t, tc.levels, levels)
	}
}
