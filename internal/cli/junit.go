package cli

import (
	"cmp"
	"encoding/xml"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/render"
)

// junit is findings as JUnit XML: a test case for each code, which fails where findings decide the
// exit status.
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

// newSuite is what a command found in the file at path.
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
// "" for one that was.
func (s *junitSuite) addCodes(class string, codes []*finding.Code, report *finding.Report, failOn finding.Level, skipped func(*finding.Code) string) {
	for _, code := range slices.SortedStableFunc(slices.Values(codes), func(a, b *finding.Code) int { return cmp.Compare(a.Name, b.Name) }) {
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
