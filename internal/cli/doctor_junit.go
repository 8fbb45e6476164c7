package cli

import (
	"io"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// printJUnit prints a report as JUnit XML. It has no times: the same file gives the same report.
func printJUnit(w io.Writer, in inputInfo, report *finding.Report, failOn finding.Level, skipped func(*finding.Code) string) error {
	suite := newSuite("doctor", in.Path)
	suite.addCodes("etcdshift.doctor", doctor.Codes(), report, failOn, skipped)
	return printSuites(w, suite)
}

// unchecked tells why a run found nothing of a code, "" where it was looked for.
func unchecked(o doctor.Options, report *finding.Report) func(*finding.Code) string {
	return func(code *finding.Code) string {
		switch {
		case slices.Contains(o.Ignore, code.Name):
			return "left out with --ignore"
		case report.Counts[doctor.CodeDamaged] > 0:
			return "not checked: the file is damaged"
		case !o.NewMachines && slices.Contains(machines.Codes(), code):
			return "not asked for: --for new-machines"
		}
		return ""
	}
}
