// Package report collects the results of other packages about a snapshot in one document, and
// writes it as one HTML page, with the templates page.html and sections.html.
//
// Invariants:
//
//   - The same files and options give the same document, and the same bytes of the page: no clock,
//     no host name.
//   - Nothing is read twice for the same fact: other packages provide it.
//   - For a damaged file, only the damage is reported.
//   - The document contains no Secret values. Credentials in texts of findings are redacted.
//   - The page loads nothing external and runs nothing: no script, no style attribute. Its policy
//     allows one style sheet, by its hash.
//   - A text from a snapshot stays text: html/template escapes it. Control characters and
//     characters that change the text direction are visible.
//   - Long texts and long lists of the page are cut, with the omitted amount.
package report

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/redact"
)

// Most is the maximum length of lists collected for a report: largest objects, most written
// objects, latest deletions, differences by name.
const Most = 20

// Report is the content of a page. For a damaged file only the first three fields are set.
type Report struct {
	Verification Verification `json:"verification"`
	Diagnosis    Diagnosis    `json:"diagnosis"`
	Skipped      []string     `json:"skipped,omitempty"` // flags ignored because the file is damaged

	Status    *Status        `json:"status,omitempty"`
	Archive   string         `json:"archive,omitempty"` // description of the archive, if "kcp extract" created the file
	Sizes     *inspect.Sizes `json:"sizes,omitempty"`
	Leases    []TTL          `json:"leases,omitempty"` // longest first
	Activity  *Activity      `json:"activity,omitempty"`
	Before    *Difference    `json:"before,omitempty"`    // with --before
	Migration *Migration     `json:"migration,omitempty"` // with --migration
}

// Options select the contents of a report.
type Options struct {
	Doctor    doctor.Options
	Before    *inspect.Reader // an older snapshot, or nil
	Migration []byte          // the JSON report of a migration, or nil
}

// Damaged returns the report for a file that cannot be opened because of err.
func Damaged(err error, o Options) *Report {
	return begun(doctor.Damaged(err, o.Doctor), redact.NewShared())
}

// Read returns the report for the snapshot of r. Damage is part of the report; an error means that
// reading failed.
func Read(ctx context.Context, r *inspect.Reader, o Options) (*Report, error) {
	diagnosis, err := doctor.Examine(ctx, r, o.Doctor)
	if err != nil {
		return nil, err
	}
	hide, err := r.Secrets(ctx)
	if err != nil { // damaged file
		hide = redact.NewShared()
	}
	out := begun(diagnosis, hide)
	if !out.Verification.Sound {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, *inspect.Reader, Options) error{
		out.readFile, out.readRecords, out.readBefore, out.readMigration,
	} {
		if err := step(ctx, r, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func begun(diagnosis *finding.Report, hide *redact.Shared) *Report {
	out := &Report{Verification: verified(diagnosis), Diagnosis: Diagnosed(diagnosis)}
	for i := range out.Diagnosis.Findings {
		f := &out.Diagnosis.Findings[i]
		f.Message = hide.Text(f.Message)
	}
	return out
}

// readFile reads the properties of the file and its sizes.
func (out *Report) readFile(ctx context.Context, r *inspect.Reader, _ Options) (err error) {
	out.Verification.warn(ctx, r.Snapshot())
	if out.Status, err = ReadStatus(ctx, r, true); err != nil {
		return err
	}
	if out.Sizes, err = inspect.Measure(ctx, r, Most); err != nil {
		return err
	}
	out.Leases, err = readLeases(ctx, r.Snapshot())
	return err
}

// readRecords reads the history from records.
func (out *Report) readRecords(ctx context.Context, r *inspect.Reader, _ Options) (err error) {
	out.Activity, err = readActivity(ctx, r)
	return err
}
