package report

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Verification reports whether a file is sound.
type Verification struct {
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
	Warnings []string `json:"warnings,omitempty"`
}

func verified(diagnosis *finding.Report) Verification {
	v := Verification{Sound: true, Findings: []string{}}
	for _, f := range diagnosis.Findings {
		if f.Code == doctor.CodeDamaged {
			v.Sound, v.Findings = false, append(v.Findings, f.Reason)
		}
	}
	return v
}

// MostWarnings is the maximum number of listed warnings of a file.
const MostWarnings = 20

// warn lists oddities of a file that etcd accepts.
func (v *Verification) warn(ctx context.Context, s *snapshot.Snapshot) {
	v.Warnings = s.Warnings()
	for odd := range snapshot.Odd(ctx, s) {
		if len(v.Warnings) >= MostWarnings {
			v.Warnings = append(v.Warnings, "... and more")
			return
		}
		v.Warnings = append(v.Warnings, odd.Error())
	}
}

// Diagnosis has the findings of doctor.
type Diagnosis struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	// Findings are sorted by level, the gravest first, then by code and key.
	Findings []Finding             `json:"findings"`
	Counts   map[*finding.Code]int `json:"counts"` // number of findings by code, including unlisted findings
}

// Finding is a finding in the form printed by doctor.
type Finding struct {
	Code    *finding.Code `json:"code"`
	Level   finding.Level `json:"level"`
	Key     string        `json:"key,omitempty"` // etcd key; absent for a finding about the file
	Message string        `json:"message"`
	Remedy  string        `json:"remedy"`
	// the number of objects, if several; key is the first
	Objects int `json:"objects,omitempty"`
}

// Diagnosed returns the Diagnosis of a doctor report.
func Diagnosed(r *finding.Report) Diagnosis {
	d := Diagnosis{
		Errors: r.Count(finding.Error), Warnings: r.Count(finding.Warning), Infos: r.Count(finding.Info),
		Findings: make([]Finding, 0, len(r.Findings)), Counts: r.Counts,
	}
	for _, f := range r.Findings {
		d.Findings = append(d.Findings, Finding{f.Code, f.Level, f.Key, f.Reason, f.Code.Remedy, f.Objects})
	}
	return d
}
