package transform

import (
	"errors"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Raise reports a finding about the record at key. goOn is false where it refuses the run; a finding that --allow takes goes on
// as its code says. Several reasons of one code about one record become one problem.
func (v *View) Raise(key string, f *finding.Finding) (goOn bool) {
	p := v.report.decide(key, f)
	if p.Level == finding.Error {
		p.Reason = v.explain(p)
		v.unreadable[key] = v.unreadable[key] || p.Code == finding.Encrypted || p.Code == finding.Undecodable
	}
	id := problemID{p.Key, p.Code.Name, p.Level, p.Outcome}
	if at, there := v.problems[id]; there && key != "" {
		v.merge(&v.report.Problems[at], p)
	} else {
		v.problems[id] = len(v.report.Problems)
		v.report.Problems = append(v.report.Problems, p)
	}
	return p.Outcome != finding.Refused
}

// Raise is View.Raise without a view: what is found twice is reported twice.
func (r *Report) Raise(key string, f *finding.Finding) (goOn bool) {
	p := r.decide(key, f)
	r.Problems = append(r.Problems, p)
	return p.Outcome != finding.Refused
}

// decide returns f with its key and its outcome, where it has none yet.
func (r *Report) decide(key string, f *finding.Finding) finding.Finding {
	p := *f
	p.Key = key
	switch {
	case p.Outcome != "":
	case p.Level != finding.Error:
		p.Outcome = finding.Noted
	case p.Code.Allowed != "" && r.allow[p.Code.Name]:
		p.Outcome = p.Code.Allowed
	default:
		p.Outcome = finding.Refused
	}
	return p
}

// CodeOf is the code of an error about a value as a whole.
func CodeOf(err error) *finding.Code {
	if errors.Is(err, encoding.ErrEncrypted) {
		return finding.Encrypted
	}
	return finding.Undecodable
}

// Unreadable is the finding of a value that cannot be read.
func Unreadable(err error) *finding.Finding { return CodeOf(err).Because("%v", err) }

// RaiseUnreadable is Raise for a value that cannot be read. Several phases look at some values; the first to find one unreadable
// says so.
func (v *View) RaiseUnreadable(key string, f *finding.Finding) {
	if !v.unreadable[key] {
		v.Raise(key, f)
	}
}

// Readable reports a value that no API server can read as what its key says. It does not judge encrypted values and unknown kinds.
func (v *View) Readable(key keys.Key, e *Entry) bool {
	if e.Undecryptable != nil {
		return true
	}
	err := CheckValue(key, e.Value)
	if err != nil {
		v.RaiseUnreadable(string(e.Key), Unreadable(err))
	}
	return err == nil
}

// CheckValue says why no API server can read a decrypted value. Kinds that this build does not know are not judged.
func CheckValue(key keys.Key, value []byte) error {
	if err := inspect.CheckValue(key, value); !errors.Is(err, native.ErrUnknownKind) {
		return err
	}
	return nil
}

// noteUndecryptable remembers why a value could not be opened, for who reports that it could not be read.
func (v *View) noteUndecryptable(e *Entry) {
	if e != nil && e.Undecryptable != nil {
		v.sealed[string(e.Key)] = e.Undecryptable
	}
}

// explain adds to the reason of an encrypted value why no key opens it.
func (v *View) explain(p finding.Finding) string {
	sealed, reason := v.sealed[p.Key], p.Reason
	if p.Code.Name != finding.Encrypted.Name || sealed == nil || strings.Contains(reason, sealed.Error()) {
		return reason
	}
	for at := range reason { // where a reason ends as the longer one begins, it is said once
		if strings.HasPrefix(sealed.Error(), reason[at:]) {
			return reason[:at] + sealed.Error()
		}
	}
	return reason + ": " + sealed.Error()
}

// merge adds the reason of p to that of the problem that is there.
func (v *View) merge(old *finding.Finding, p finding.Finding) {
	if sealed := v.sealed[p.Key]; p.Code.Name == finding.Encrypted.Name && sealed != nil && strings.Contains(old.Reason, sealed.Error()) {
		p.Reason = strings.TrimSuffix(strings.TrimSuffix(p.Reason, sealed.Error()), ": ") // said already
	}
	if p.Reason == "" || len(old.Reason) > maxReasons || slices.Contains(strings.Split(old.Reason, reasonSeparator), p.Reason) {
		return
	}
	old.Reason += reasonSeparator + p.Reason
}

const (
	reasonSeparator = "; "
	// maxReasons is how many bytes of reasons a problem gathers.
	maxReasons = 4096
)

// problemID is what makes two findings one problem.
type problemID struct {
	key, code string
	level     finding.Level
	outcome   finding.Outcome
}

// Report is the report of the run, for what only the transform knows.
func (v *View) Report() *Report { return v.report }
