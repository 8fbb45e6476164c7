package cli

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
)

// closed are the properties that sarif-schema-2.1.0.json allows for the objects we write, as a path
// with [] for elements; the schema closes each of them. Those with a star are required.
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

// checkClosed walks a document.
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

// The parts of SARIF that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool       `json:"tool"`
		Artifacts  []sarifArtifact `json:"artifacts"`
		Results    []sarifResult   `json:"results"`
		ColumnKind string          `json:"columnKind"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string      `json:"id"`
		ShortDescription     sarifText   `json:"shortDescription"`
		Help                 sarifText   `json:"help"`
		DefaultConfiguration sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifArtifact struct {
		Location sarifURI          `json:"location"`
		Length   int64             `json:"length"`
		Hashes   map[string]string `json:"hashes,omitempty"`
	}
	sarifURI struct {
		URI   string `json:"uri"`
		Index *int   `json:"index,omitempty"`
	}
	sarifResult struct {
		RuleID     string           `json:"ruleId"`
		RuleIndex  int              `json:"ruleIndex"`
		Level      string           `json:"level"`
		Message    sarifText        `json:"message"`
		Locations  []sarifLocation  `json:"locations"`
		Properties *sarifProperties `json:"properties,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation struct {
			ArtifactLocation sarifURI `json:"artifactLocation"`
		} `json:"physicalLocation"`
		LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifProperties struct {
		Objects int `json:"objects"`
	}
)

// TestSARIF: what is printed keeps the rules of SARIF 2.1.0's schema.
func TestSARIF(t *testing.T) {
	broken := doctor.Damaged(errors.New("broken"), doctor.Options{})
	code := func(name string) *finding.Code {
		all := doctor.Codes()
		return all[slices.Index(finding.Names(all...), name)]
	}
	many := &finding.Report{Findings: []finding.Finding{
		{Code: code("orphans"), Level: finding.Warning, Key: "/registry/a b/\x1b\xff", Reason: "m", Objects: 3},
		{Code: code("bump-revision"), Level: finding.Info, Reason: "m"},
	}}
	for _, tc := range []struct {
		in     inputInfo
		report *finding.Report
		uri    string
		levels []string
	}{
		{inputInfo{Path: "dir/in %.db"}, broken, "dir/in%20%25.db", []string{"error"}},
		{inputInfo{Path: "/a b/in.db", Bytes: 9, SHA256: strings.Repeat("0", 64)}, many, "file:///a%20b/in.db", []string{"warning", "note"}},
		{inputInfo{Path: "in:put.db"}, &finding.Report{}, "./in:put.db", nil},
	} {
		text, err := json.Marshal(toSARIF(tc.in, doctor.Codes(), tc.report))
		require.NoError(t, err)
		var document map[string]any
		require.NoError(t, json.Unmarshal(text, &document))
		checkClosed(t, "", document)
		require.Equal(t, "2.1.0", document["version"])

		var log sarifLog
		require.NoError(t, json.Unmarshal(text, &log))
		run := log.Runs[0]
		require.Contains(t, []string{"utf16CodeUnits", "unicodeCodePoints"}, run.ColumnKind)
		require.GreaterOrEqual(t, run.Artifacts[0].Length, int64(-1))
		require.Equal(t, tc.uri, run.Artifacts[0].Location.URI)
		_, err = url.Parse(run.Artifacts[0].Location.URI)
		require.NoError(t, err)
		var ids, levels []string
		for _, rule := range run.Tool.Driver.Rules {
			ids = append(ids, rule.ID)
			require.Contains(t, []string{"error", "warning", "note"}, rule.DefaultConfiguration.Level)
			require.NotEmpty(t, rule.Help.Text)
		}
		slices.Sort(ids)
		require.Len(t, slices.Compact(ids), len(run.Tool.Driver.Rules))
		for _, r := range run.Results {
			levels = append(levels, r.Level)
			require.Equal(t, r.RuleID, run.Tool.Driver.Rules[r.RuleIndex].ID)
			require.NotEmpty(t, r.Message.Text)
			require.Len(t, r.Locations, 1)
			require.Zero(t, *r.Locations[0].PhysicalLocation.ArtifactLocation.Index)
		}
		require.Equal(t, tc.levels, levels)
		require.NotNil(t, document["runs"].([]any)[0].(map[string]any)["results"]) // a list, not null: it was looked for
	}
}
