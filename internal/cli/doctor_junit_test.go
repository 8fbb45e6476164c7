package cli

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
)

// TestJUnit: the output is JUnit XML with the numbers of its test cases, for any names in the file.
func TestJUnit(t *testing.T) {
	code := func(name string) *finding.Code { return finding.Named(doctor.Codes(), name) }
	orphans, bump := code("orphans"), code("bump-revision")
	report := &finding.Report{Counts: map[*finding.Code]int{orphans: 1001, bump: 1}, Findings: []finding.Finding{
		{Code: orphans, Level: finding.Warning, Key: "/registry/a <b>&\"]]>/\x1b\xff\x00", Reason: "<failure>"},
		{Code: bump, Level: finding.Info, Reason: "low"},
	}}
	damaged := doctor.Damaged(errors.New("broken"), doctor.Options{})
	for _, tc := range []struct {
		name               string
		report             *finding.Report
		options            doctor.Options
		failOn             finding.Level
		failed, said, skip []string // some of those skipped
	}{
		{"warnings fail", report, doctor.Options{Ignore: []string{"damaged"}}, finding.Warning, []string{"orphans"},
			[]string{"bump-revision"}, []string{"damaged", "old-nodes"}},
		{"only errors fail", report, doctor.Options{NewMachines: true}, finding.Error, nil,
			[]string{"bump-revision", "orphans"}, nil},
		{"damage", damaged, doctor.Options{}, finding.Error, []string{"damaged"}, nil, []string{"orphans"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			e := examined{"doctor", inputInfo{Path: "a\x1b<b>.db"}, doctor.Codes(), tc.report,
				unchecked(tc.options, tc.report)}
			require.NoError(t, printSuites(&out, e.suite(tc.failOn)))
			requireElements(t, out.String())
			var read junit
			require.NoError(t, xml.Unmarshal([]byte(out.String()), &read))
			var failed, said, skipped []string
			for _, c := range read.Suites[0].Cases {
				switch {
				case c.Failure != nil:
					failed = append(failed, c.Name)
					require.Contains(t, c.Failure.Text, "-> ")
				case c.Out != "":
					said = append(said, c.Name)
				case c.Skipped != nil:
					skipped = append(skipped, c.Name)
					require.NotEmpty(t, c.Skipped.Message)
				}
			}
			require.Equal(t, tc.failed, failed)
			require.Equal(t, tc.said, said)
			require.Subset(t, skipped, tc.skip)
			s := read.Suites[0]
			require.Equal(t, []int{len(doctor.Codes()), len(failed), 0, len(skipped)},
				[]int{s.Tests, s.Failures, s.Errors, s.Skipped})
			require.Equal(t, []int{s.Tests, s.Failures, 0}, []int{read.Tests, read.Failures, read.Errors})
			require.NotContains(t, out.String(), "\x1b")
		})
	}
	var out strings.Builder
	e := examined{"doctor", inputInfo{Path: "in.db"}, doctor.Codes(), report, unchecked(doctor.Options{}, report)}
	require.NoError(t, printSuites(&out, e.suite(finding.Warning)))
	require.Contains(t, out.String(), "... and 1000 more")
	require.Contains(t, out.String(), "/registry/a &lt;b&gt;&amp;")
}

// requireElements checks elements and attributes against the ones known to readers of JUnit XML
// (junit-10.xsd of the Jenkins xUnit plugin).
func requireElements(t *testing.T, text string) {
	t.Helper()
	known := map[string]string{
		"testsuites": "tests failures errors", "testsuite": "name tests failures errors skipped",
		"testcase": "name classname",
		"failure":  "message type", "skipped": "message", "system-out": "",
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if start, is := token.(xml.StartElement); is {
			attributes, is := known[start.Name.Local]
			require.True(t, is, start.Name.Local)
			for _, a := range start.Attr {
				require.Contains(t, strings.Fields(attributes), a.Name.Local)
			}
			require.Len(t, start.Attr, len(strings.Fields(attributes)))
		}
	}
}
