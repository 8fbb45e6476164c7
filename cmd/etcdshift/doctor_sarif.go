package main

import (
	"net/url"
	"path/filepath"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/doctor"
)

// The parts of SARIF 2.1.0 (OASIS, sarif-schema-2.1.0.json) that findings need.
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

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

func toSARIF(in inputInfo, report *doctor.Report) sarifLog {
	t := tool()
	run := sarifRun{ColumnKind: "utf16CodeUnits", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: t.Name, Version: t.Version, InformationURI: "https://github.com/etcdshift/etcdshift"}
	index := map[*finding.Code]int{}
	for i, code := range doctor.Codes() {
		index[code] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			code.Name, sarifText{code.Title}, sarifText{code.Remedy}, sarifConfig{sarifLevel(code.Level)},
		})
	}
	file := sarifArtifact{Location: sarifURI{URI: toURI(in.Path)}, Length: in.Bytes}
	if in.SHA256 != "" {
		file.Hashes = map[string]string{"sha-256": in.SHA256}
	} else {
		file.Length = -1 // not known, as the schema says it
	}
	run.Artifacts = []sarifArtifact{file}
	for _, f := range report.Findings {
		r := sarifResult{RuleID: f.Code.Name, RuleIndex: index[f.Code], Level: sarifLevel(f.Level), Message: sarifText{f.Reason}}
		var at sarifLocation
		zero := 0
		at.PhysicalLocation.ArtifactLocation = sarifURI{file.Location.URI, &zero}
		if f.Key != "" {
			at.LogicalLocations = []sarifLogical{{f.Key, "object"}}
		}
		if r.Locations = []sarifLocation{at}; f.Objects > 0 {
			r.Properties = &sarifProperties{f.Objects}
		}
		run.Results = append(run.Results, r)
	}
	return sarifLog{sarifSchema, "2.1.0", []sarifRun{run}}
}

// toURI is a path as a URI reference: relative where the path is.
func toURI(path string) string {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	}
	return (&url.URL{Path: filepath.ToSlash(path)}).String()
}

func sarifLevel(l finding.Level) string {
	if l == finding.Info {
		return "note"
	}
	return string(l)
}
