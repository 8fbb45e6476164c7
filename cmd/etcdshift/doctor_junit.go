package main

import (
	"cmp"
	"encoding/xml"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/doctor"
	"github.com/etcdshift/etcdshift/internal/render"
)

// junit is a report as JUnit XML: a test case for each code, which fails where findings decide the
// exit status. It has no times: the same file gives the same report.
type (
	junit struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Suite    junitSuite `xml:"testsuite"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
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

// printJUnit prints a report in which findings of failOn or worse fail. skipped tells why a code
// was not checked, "" for one that was.
func printJUnit(w io.Writer, in inputInfo, report *finding.Report, failOn finding.Level, skipped func(*finding.Code) string) error {
	codes := doctor.Codes()
	slices.SortStableFunc(codes, func(a, b *finding.Code) int { return cmp.Compare(a.Name, b.Name) })
	suite := junitSuite{Name: render.Printable("etcdshift doctor " + in.Path)}
	for _, code := range codes {
		c := junitCase{Name: code.Name, Class: "etcdshift.doctor"}
		found := slices.DeleteFunc(slices.Clone(report.Findings), func(f finding.Finding) bool { return f.Code != code })
		text := junitFindings(found, report.Counts[code])
		switch why := skipped(code); {
		case len(found) > 0 && code.Level.Compare(failOn) <= 0:
			c.Failure = &junitText{code.Title, string(code.Level), text}
			suite.Failures++
		case len(found) > 0:
			c.Out = text
		case why != "":
			c.Skipped = &junitText{Message: why}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	out, err := xml.MarshalIndent(junit{Suite: suite, Tests: suite.Tests, Failures: suite.Failures}, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(out)+"\n")
	return err
}

// junitFindings lists the findings of a code, of which there are so many, with the remedy.
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
	_ = p.Flush() // a Builder takes everything
	return text.String()
}

// unchecked tells why a run found nothing of a code, "" where it was looked for.
func unchecked(o doctor.Options, report *finding.Report) func(*finding.Code) string {
	return func(code *finding.Code) string {
		switch {
		case slices.Contains(o.Ignore, code.Name):
			return "left out with --ignore"
		case report.Counts[doctor.CodeDamaged] > 0:
			return "not checked: the file is damaged"
		case !o.NewMachines && slices.Contains(doctor.MachineCodes(), code):
			return "not asked for: --for new-machines"
		}
		return ""
	}
}
