package main

import (
	"net/url"
	"path/filepath"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/doctor"
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// toSARIF returns the report as SARIF 2.1.0 (OASIS, sarif-schema-2.1.0.json).
func toSARIF(in inputInfo, report *doctor.Report) any {
	type object = map[string]any
	text := func(s string) object { return object{"text": s} }
	index, rules := map[*finding.Code]int{}, []object{}
	for i, code := range doctor.Codes() {
		index[code] = i
		rules = append(rules, object{
			"id": code.Name, "shortDescription": text(code.Title), "help": text(code.Remedy),
			"defaultConfiguration": object{"level": sarifLevel(code.Level)},
		})
	}
	file := object{"location": object{"uri": toURI(in.Path)}, "length": in.Bytes}
	if in.SHA256 != "" {
		file["hashes"] = object{"sha-256": in.SHA256}
	} else {
		file["length"] = -1 // not known, as the schema says it
	}
	results := []object{}
	for _, f := range report.Findings {
		at := object{"physicalLocation": object{"artifactLocation": object{"uri": toURI(in.Path), "index": 0}}}
		if f.Key != "" {
			at["logicalLocations"] = []object{{"fullyQualifiedName": f.Key, "kind": "object"}}
		}
		result := object{
			"ruleId": f.Code.Name, "ruleIndex": index[f.Code], "level": sarifLevel(f.Level), "message": text(f.Reason), "locations": []object{at},
		}
		if f.Objects > 0 {
			result["properties"] = object{"objects": f.Objects}
		}
		results = append(results, result)
	}
	driver := object{
		"name": tool().Name, "version": tool().Version, "informationUri": "https://github.com/etcdshift/etcdshift", "rules": rules,
	}
	run := object{"tool": object{"driver": driver}, "artifacts": []object{file}, "results": results, "columnKind": "utf16CodeUnits"}
	return object{"$schema": sarifSchema, "version": "2.1.0", "runs": []object{run}}
}

// toURI returns a path as a URI reference. A relative path stays relative.
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
