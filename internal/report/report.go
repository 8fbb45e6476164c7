// Package report collects what the other rooms know of a snapshot in one document, for people who
// look at it and sign it. Folder page has its HTML.
//
// Invariants:
//
//   - The same files and options give the same document: no clock, no host name.
//   - Nothing is read twice for the same fact: the rooms that know it are asked.
//   - Of a damaged file nothing but the damage is told.
//   - It holds no Secret values. Texts of findings that hold a credential are redacted.
//   - Each list in a page is bounded, and the number of what was left out is said.
package report

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/redact"
)

// Most is the length of the lists that are made for a report: the largest objects, those written
// most often, the last deletions, differences by name.
const Most = 20

// Report is what a page is made of. A damaged file has the first three fields only.
type Report struct {
	Verification Verification `json:"verification"`
	Diagnosis    Diagnosis    `json:"diagnosis"`
	Skipped      []string     `json:"skipped,omitempty"` // flags that were skipped, since the file is damaged

	Status    *Status        `json:"status,omitempty"`
	Archive   string         `json:"archive,omitempty"` // what the file is, if "kcp extract" made it
	Sizes     *inspect.Sizes `json:"sizes,omitempty"`
	Leases    []TTL          `json:"leases,omitempty"` // those that run the longest first
	Activity  *Activity      `json:"activity,omitempty"`
	Before    *Difference    `json:"before,omitempty"`    // with --before
	Migration *Migration     `json:"migration,omitempty"` // with --migration
}

// Options choose what is reported.
type Options struct {
	Doctor    doctor.Options
	Before    *inspect.Reader // an older snapshot; nil for none
	Migration []byte          // the report of a migration, JSON; nil for none
}

// Damaged returns the report on a file that cannot be opened because of err.
func Damaged(err error, o Options) *Report {
	return begun(doctor.Damaged(err, o.Doctor), redact.NewShared())
}

// Read reads the snapshot of r. An error means that it could not be read; damage is in the report.
func Read(ctx context.Context, r *inspect.Reader, o Options) (*Report, error) {
	diagnosis, err := doctor.Examine(ctx, r, o.Doctor)
	if err != nil {
		return nil, err
	}
	hide, err := r.Secrets(ctx)
	if err != nil { // of a damaged file
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

// readFile reads what the file is, and what fills it.
func (out *Report) readFile(ctx context.Context, r *inspect.Reader, _ Options) (err error) {
	out.Verification.warn(ctx, r.Snapshot())
	if out.Status, err = ReadStatus(ctx, r); err != nil {
		return err
	}
	if out.Sizes, err = inspect.Measure(ctx, r, Most); err != nil {
		return err
	}
	out.Leases, err = readLeases(ctx, r.Snapshot())
	return err
}

// readRecords reads what records tell of the past.
func (out *Report) readRecords(ctx context.Context, r *inspect.Reader, _ Options) (err error) {
	out.Activity, err = readActivity(ctx, r)
	return err
}
