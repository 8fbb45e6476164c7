package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "write an HTML report about a snapshot",
		ArgsUsage: "SNAPSHOT [OUT.html]",
		Description: `etcdshift report before.db before.html
etcdshift report after.db change.html \
    --before before.db --migration report.json`,
		UsageText: `Writes one page: identity and digests, the verdicts of verify and doctor, stored versions, sizes,
objects over time, the largest and most often written objects, history and leases, and a place for signatures.
--before adds the changes since OLD, --migration the changes of a migration. OUT.html needs no network and no script,
and prints well. Secrets are redacted.

Long lists are cut; the page shows the number of missing lines and the command that prints all of them. -o json
prints the data of the page, and needs no OUT. OUT has mode 0600, appears complete and replaces no file.

Exit status: 0 written, 1 written, with damage, findings of the level of --fail-on or worse, or a REPORT about other
files, 2 usage, 5 could not read or write, 130 interrupted. Differences to OLD do not count.`,
		Flags: readFlags("decrypt values with", append(doctorFlags(),
			&cli.StringFlag{Name: "before", Usage: "add the differences to the older snapshot `OLD`"},
			&cli.StringFlag{Name: "migration", Usage: "add the JSON `REPORT` of a migration (the file of --report)"},
			oneOf(&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT` too: json"},
				"json"))...),
		Action: checking(runReport),
	}
}

// snapshotReport is the document of report -o json.
type snapshotReport struct {
	documentHead
	report.Report
}

// maxMigration limits the report of a migration: 200,000 UIDs have 50 MiB.
const maxMigration = 256 << 20

func runReport(c *cli.Context, args []string) error {
	out := ""
	if len(args) == 2 {
		out = args[1]
	}
	switch {
	case out == "" && wantsJSON(c):
	case out == "":
		return usagef(commandPath(c), "takes SNAPSHOT OUT.html; without OUT, -o json")
	case filepath.Ext(out) != ".html":
		return usagef(commandPath(c), "OUT is %q; it must end in .html", out)
	}
	var f *publish.File
	if out != "" {
		var err error
		if f, err = create(c, out); err != nil {
			return err
		}
		defer f.Discard()
	}
	in, found, err := readReport(c, args[0])
	if err != nil {
		return err
	}
	skip(c, found)
	if f != nil {
		if err := writePage(f, report.Page{Report: found, Path: args[0], Version: version()}); err != nil {
			return err
		}
	}
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, snapshotReport{document("SnapshotReport", in), *found})
	} else {
		_, err = fmt.Fprintln(c.App.Writer, render.Printable(out))
	}
	if err != nil && f != nil {
		err = fmt.Errorf("%w (%s: %s)", err, out, transform.Written)
		return &failure{exitCannotCheck, err, "the page was written; only printing failed"}
	}
	return cmp.Or(err, verdictOf(c, args[0], found))
}

// skip records the flags ignored for a damaged snapshot.
func skip(c *cli.Context, r *report.Report) {
	for _, name := range []string{"before", "migration"} {
		if !r.Verification.Sound && c.IsSet(name) {
			r.Skipped = append(r.Skipped, "--"+name)
		}
	}
	if r.Skipped != nil {
		warn(c, fmt.Sprintf("the snapshot is damaged: %s skipped", strings.Join(r.Skipped, " and ")))
	}
}

func writePage(f *publish.File, p report.Page) error {
	if err := p.HTML(f.File()); err != nil {
		return err
	}
	return f.Publish()
}

// verdictOf returns the error with the exit status.
func verdictOf(c *cli.Context, path string, r *report.Report) error {
	var found []string
	d := r.Diagnosis
	if d.Errors > 0 {
		found = append(found, phrase.Count(d.Errors, "error"))
	}
	if d.Warnings > 0 && c.String("fail-on") == string(finding.Warning) {
		found = append(found, phrase.Count(d.Warnings, "warning"))
	}
	if m := r.Migration; m != nil && m.Fits == report.FitsNot {
		found = append(found, c.String("migration")+" is about other files")
	}
	if found == nil {
		return nil
	}
	return &failure{exitFound, fmt.Errorf("%s: %s", path, strings.Join(found, ", ")),
		explainCode + "; --ignore CODE leaves it out"}
}

// readReport reads the snapshot at path. A damaged file gets a report too.
func readReport(c *cli.Context, path string) (in inputInfo, out *report.Report, err error) {
	reading := progress(c).Phase("reading " + path)
	defer reading.End()
	options := report.Options{}
	if options.Doctor, err = doctorOptions(c); err != nil {
		return in, nil, err
	}
	if name := c.String("migration"); name != "" {
		if options.Migration, _, err = input.ReadFile(c.Context, name, maxMigration); err != nil {
			return in, nil, fmt.Errorf("--migration: %w", err)
		}
	}
	o, err := openSnapshot(c, path, encryptionConfig)
	if snapshot.IsDamage(err) {
		return inputInfo{Path: path}, report.Damaged(err, options), nil
	}
	if err != nil {
		return in, nil, err
	}
	defer o.Close()
	reading.Of(part(5, 3, o))
	if out, err = readOpened(c, o, options); err != nil {
		return in, nil, err
	}
	in, err = o.input(c.Context)
	if !out.Verification.Sound && errors.Is(err, snapshot.ErrDamaged) { // already in the report
		err = nil
	}
	return in, out, err
}

// readOpened reads a snapshot, beside the one of --before.
func readOpened(c *cli.Context, o *opened, options report.Options) (out *report.Report, err error) {
	archived, damage, err := openArchive(c.Context, o.Snapshot())
	switch {
	case err != nil:
		return nil, err
	case damage != nil:
		return report.Damaged(damage, options), nil
	}
	options.Doctor.Archive = archived != ""
	read := func() error {
		if out, err = report.Read(c.Context, o.Reader, options); err == nil && out.Verification.Sound {
			err = checkPrefixes(c, nil, o)
		}
		if errors.Is(err, report.ErrNoMigration) {
			err = &fileError{[]string{c.String("migration")}, err}
		}
		return err
	}
	if path := c.String("before"); path != "" {
		old, err := openSnapshot(c, path, encryptionConfig)
		if err != nil {
			return nil, fmt.Errorf("--before: %w", err)
		}
		defer old.Close()
		options.Before = old.Reader
		inner := read
		read = func() error { return old.Snapshot().Guard(inner) }
	}
	if err := o.Snapshot().Guard(read); err != nil {
		return nil, err
	}
	out.Archive = archived
	return out, nil
}
