package cli

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// explainCode is the hint for findings.
const explainCode = `"etcdshift explain CODE" explains a code`

// examined is a file with its findings, printed by "doctor" and "policy check".
type examined struct {
	command   string
	in        inputInfo
	codes     []*finding.Code // checked codes
	found     *finding.Report
	unchecked func(*finding.Code) string // why a code was not checked; "" for a checked code
}

// print prints the findings in a format of -o. document is their JSON; more prints the remaining
// text.
func (e examined) print(c *cli.Context, document any, more func(*render.Page)) error {
	switch c.String("output") {
	case "json":
		return render.JSON(c.App.Writer, document)
	case "sarif":
		return render.JSON(c.App.Writer, toSARIF(e.in, e.codes, e.found))
	case "junit":
		return printSuites(c.App.Writer, e.suite(finding.Level(c.String("fail-on"))))
	}
	p := render.NewPage(render.Folding(c.App.Writer))
	printFindings(p, e.found)
	more(p)
	p.Printf("%s, %s, %s\n", phrase.Count(e.found.Count(finding.Error), "error"),
		phrase.Count(e.found.Count(finding.Warning), "warning"), phrase.Count(e.found.Count(finding.Info), "info"))
	return p.Flush()
}

// suite returns the findings as JUnit XML, without times: the same file gives the same report.
func (e examined) suite(failOn finding.Level) junitSuite {
	suite, class := newSuite(e.command, e.in.Path), strings.Fields(e.command)[0]
	suite.addCodes("etcdshift."+class, e.codes, e.found, failOn, e.unchecked)
	return suite
}

// verdict returns an error for findings of the level of --fail-on or worse; nil without any.
func (e examined) verdict(c *cli.Context, path, hint string) error {
	level := finding.Level(c.String("fail-on"))
	if !e.found.AtLeast(level) {
		return nil
	}
	found := phrase.Count(e.found.Count(finding.Error), "error")
	if level == finding.Warning {
		found += ", " + phrase.Count(e.found.Count(finding.Warning), "warning")
	}
	return &failure{exitFound, fmt.Errorf("%s: %s found", path, found), hint}
}

// printFindings prints findings by code, with the remedy.
func printFindings(p *render.Page, found *finding.Report) {
	for findings := range grouped(found.Findings, func(f finding.Finding) *finding.Code { return f.Code }) {
		code := findings[0].Code
		p.Printf("%s %s: %s\n", findings[0].Level, code.Name, code.Title)
		most := 5
		switch {
		case strings.HasPrefix(code.Name, "webhook-"): // each one may stop the cluster
			most = len(findings)
		case code.Level == finding.Error:
			most = mostListed
		}
		lines := stream.Mapped(findings, func(f finding.Finding) string { return about(f.Reason, f.Key) })
		p.First("   ", lines, most, found.Counts[code], "; -o json lists them all")
		p.Printf("   -> %s\n\n", code.Remedy)
	}
}

// about puts subjects, such as a file and a key, before a sentence, without empty ones.
func about(text string, subjects ...string) string {
	var names []string
	for _, s := range subjects {
		if s != "" {
			names = append(names, render.Printable(s))
		}
	}
	text = render.Printable(text)
	if names == nil {
		return text
	}
	return strings.Join(names, " ") + ": " + text
}

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// toSARIF returns findings as SARIF 2.1.0 (OASIS, sarif-schema-2.1.0.json).
func toSARIF(in inputInfo, codes []*finding.Code, report *finding.Report) any {
	type object = map[string]any
	text := func(s string) object { return object{"text": s} }
	rules := stream.Mapped(codes, func(code *finding.Code) object {
		return object{
			"id": code.Name, "shortDescription": text(code.Title), "help": text(code.Remedy),
			"defaultConfiguration": object{"level": sarifLevel(code.Level)},
		}
	})
	file := object{"location": object{"uri": toURI(in.Path)}, "length": in.Bytes}
	if in.SHA256 != "" {
		file["hashes"] = object{"sha-256": in.SHA256}
	} else {
		file["length"] = -1 // unknown, in the schema's form
	}
	results := []object{}
	for _, f := range report.Findings {
		at := object{"physicalLocation": object{"artifactLocation": object{"uri": toURI(in.Path), "index": 0}}}
		if f.Key != "" {
			at["logicalLocations"] = []object{{"fullyQualifiedName": f.Key, "kind": "object"}}
		}
		result := object{
			"ruleId": f.Code.Name, "ruleIndex": slices.Index(codes, f.Code), "level": sarifLevel(f.Level),
			"message": text(f.Reason), "locations": []object{at},
		}
		if f.Objects > 0 {
			result["properties"] = object{"objects": f.Objects}
		}
		results = append(results, result)
	}
	driver := object{
		"name": tool().Name, "version": tool().Version, "rules": rules,
		"informationUri": "https://github.com/etcdshift/etcdshift",
	}
	run := object{"tool": object{"driver": driver}, "artifacts": []object{file}, "results": results,
		"columnKind": "utf16CodeUnits"}
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

// junit holds findings as JUnit XML: one test case per code, failed if the findings decide the exit
// status.
type (
	junit struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Suites   []junitSuite `xml:"testsuite"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		Seconds string     `xml:"time,attr,omitempty"`
		Skipped *junitText `xml:"skipped"`
		Failure *junitText `xml:"failure"`
		Out     string     `xml:"system-out,omitempty"` // of findings that do not fail
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// printSuites prints suites as a document.
func printSuites(w io.Writer, suites ...junitSuite) error {
	all := junit{Suites: suites}
	for _, s := range suites {
		all.Tests, all.Failures = all.Tests+s.Tests, all.Failures+s.Failures
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(out)+"\n")
	return err
}

// newSuite returns the suite of a command for the file at path.
func newSuite(command, path string) junitSuite {
	return junitSuite{Name: render.Printable("etcdshift " + command + " " + path)}
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// addCodes adds codes. Findings of failOn or worse fail. skipped tells why a code was not checked,
// "" for a checked code.
func (s *junitSuite) addCodes(class string, codes []*finding.Code, report *finding.Report, failOn finding.Level,
	skipped func(*finding.Code) string) {
	byName := func(a, b *finding.Code) int { return cmp.Compare(a.Name, b.Name) }
	for _, code := range slices.SortedStableFunc(slices.Values(codes), byName) {
		c := junitCase{Name: code.Name, Class: class}
		found := report.Of(code)
		text := junitFindings(found, report.Counts[code])
		switch why := skipped(code); {
		case len(found) > 0 && code.Level.Compare(failOn) <= 0:
			c.Failure = &junitText{code.Title, string(code.Level), text}
		case len(found) > 0:
			c.Out = text
		case why != "":
			c.Skipped = &junitText{Message: why}
		}
		s.add(c)
	}
}

// junitFindings lists the first findings of a code and the remedy; many is the total number.
func junitFindings(found []finding.Finding, many int) string {
	var text strings.Builder
	p := render.NewPage(&text)
	for _, f := range found {
		p.Printf("%s\n", about(f.Reason, f.Key))
	}
	if more := many - len(found); more > 0 {
		p.Printf("... and %d more\n", more)
	}
	if len(found) > 0 {
		p.Printf("-> %s\n", found[0].Code.Remedy)
	}
	_ = p.Flush() // a Builder never fails
	return text.String()
}
