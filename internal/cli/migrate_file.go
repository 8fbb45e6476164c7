package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// replaceReport is the flag that lets --report replace the report of an earlier attempt.
const replaceReport = "replace-report"

// reportFile is the file of --report, unnamed until complete.
type reportFile struct {
	*publish.File
	path    string
	replace bool // an earlier report
}

// createReport creates the report's file before the run, to detect a bad path early. It returns nil
// without --report.
func createReport(c *cli.Context, o transform.Options) (*reportFile, error) {
	if !c.IsSet("report") {
		return nil, nil
	}
	path := c.String("report")
	if samePath(path, o.In) || samePath(path, o.Out) {
		return nil, usagef(commandPath(c), "--report names %q, which is IN or OUT", path)
	}
	f := &reportFile{path: path, replace: c.Bool(replaceReport)}
	err := f.begin(c, o.DryRun)
	if errors.Is(err, fs.ErrExist) {
		err = &failure{exitFailed, fmt.Errorf("report: %w", err),
			"name another file, or replace an earlier report with --" + replaceReport}
	} else if err != nil {
		err = fmt.Errorf("report: %w", err)
	}
	return f, err
}

// begin creates the file. An existing file is replaced only with the flag, and only if it is a
// report: a wrong path must not destroy a snapshot.
func (f *reportFile) begin(c *cli.Context, dryRun bool) (err error) {
	if !f.replace {
		f.File, err = create(c, f.path)
		return err
	}
	if err := onlyFile(c, "--"+replaceReport, f.path); err != nil {
		return err
	}
	is, wrote, err := readReportHead(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.File, err = publish.Create(f.path)
		return err
	case err != nil:
		return err
	case !is:
		return fmt.Errorf("%s %w; only a report is replaced", f.path, fleet.ErrNotReport)
	case wrote && dryRun:
		return &failure{exitFailed, fmt.Errorf("%s is %w", f.path, errWroteOutput),
			"name another file with --report: a dry run replaces only reports of runs that wrote nothing"}
	}
	f.File, err = publish.CreateOver(f.path)
	return err
}

// errWroteOutput protects a report that must not be lost: only this report lists the deleted and
// renamed objects, needed by "--undo".
var errWroteOutput = errors.New("the report of a run that wrote a snapshot")

// readReportHead reads whether a file is a report, and whether its run wrote an output.
func readReportHead(path string) (is, wrote bool, err error) {
	old, err := os.Open(path)
	if err != nil {
		return false, false, err
	}
	defer old.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(old, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, false, err
	}
	head = head[:n]
	outcome := reportOutcome().FindSubmatch(head)
	if outcome != nil {
		is := transform.Outcome(outcome[1])
		wrote = is == transform.Written || is == transform.Unchanged
	}
	return reportHead().Match(head), wrote, nil
}

var (
	reportHead    = pattern.New(`^\{\s*"apiVersion":\s*"etcdshift/v1",\s*"kind":\s*"Report",`)
	reportOutcome = pattern.New(`"outcome":\s*"([a-z]+)"`)
)

// write writes the report. If this run wrote no snapshot, the report of a run that did stays.
func (f *reportFile) write(c *cli.Context, report *transform.Report) error {
	if f == nil {
		return nil
	}
	if f.replace && report.Output == nil {
		if _, wrote, err := readReportHead(f.path); wrote || err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(c.App.ErrWriter, "%s is %v, and stays; this run wrote nothing, and its report is not kept\n",
				render.Printable(f.path), errWroteOutput)
			return nil
		}
	}
	err := render.JSON(f.File.File(), report)
	if err == nil {
		err = f.Publish()
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
