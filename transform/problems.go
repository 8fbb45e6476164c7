package transform

import (
	"slices"
	"strings"
)

// Refuse reports an error-level problem of a record. It returns true when the code was allowed: then the record is to be
// left alone and the run goes on.
func (v *View) Refuse(key, code, reason string) (allowed bool) {
	return v.RefuseUnless(key, code, reason, decisionAllowed)
}

// RefuseUnless is Refuse for a problem that, once allowed, does not leave the record alone: decision says what is done then.
func (v *View) RefuseUnless(key, code, reason, decision string) (allowed bool) {
	p := Problem{Key: key, Code: code, Level: LevelError, Reason: v.explain(key, code, reason), Decision: decisionRefused}
	if v.allow[code] {
		p.Decision = decision
	}
	v.add(p)
	return v.allow[code]
}

// noteSealed remembers why a value could not be opened, for who reports that it could not be read.
func (v *View) noteSealed(e *Entry) {
	if e != nil && e.Sealed != nil {
		v.sealed[string(e.Key)] = e.Sealed
	}
}

// GoOn is Refuse for a problem after which, once it is allowed, everything is done all the same: no record is left alone, and the
// exit status is not that of one.
func (v *View) GoOn(key, code, reason string) (allowed bool) {
	return v.RefuseUnless(key, code, reason, decisionWentOn)
}

// explain adds to the reason of an encrypted value why no key opens it.
func (v *View) explain(key, code, reason string) string {
	sealed := v.sealed[key]
	if code != CodeEncrypted || sealed == nil || strings.Contains(reason, sealed.Error()) {
		return reason
	}
	for at := range reason { // where a reason ends as the longer one begins, it is said once
		if strings.HasPrefix(sealed.Error(), reason[at:]) {
			return reason[:at] + sealed.Error()
		}
	}
	return reason + ": " + sealed.Error()
}

// Resolve reports an error-level problem that an option of the run settled: decision says how. The run is not refused for it.
func (v *View) Resolve(key, code, reason, decision string) {
	v.add(Problem{Key: key, Code: code, Level: LevelWarning, Reason: reason, Decision: decision})
}

// Warn reports a warning.
func (v *View) Warn(key, code, reason string) {
	v.Resolve(key, code, reason, decisionNoted)
}

// add reports p. What is found of one record in several places is one problem with all reasons.
func (v *View) add(p Problem) {
	id := problemID{p.Key, p.Code, p.Level, p.Decision}
	at, there := v.problems[id]
	if !there || p.Key == "" {
		v.problems[id] = len(v.report.Problems)
		v.report.Problems = append(v.report.Problems, p)
		return
	}
	old := &v.report.Problems[at]
	if sealed := v.sealed[p.Key]; p.Code == CodeEncrypted && sealed != nil && strings.Contains(old.Reason, sealed.Error()) {
		p.Reason = strings.TrimSuffix(strings.TrimSuffix(p.Reason, sealed.Error()), ": ") // said already
	}
	if p.Reason == "" {
		return
	}
	if slices.Contains(strings.Split(old.Reason, reasonSeparator), p.Reason) || len(old.Reason) > maxReasons {
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
type problemID struct{ key, code, level, decision string }

// Allowed says whether problems of that code are to be left alone.
func (v *View) Allowed(code string) bool { return v.allow[code] }

// Report is the report of the run, for what only the transform knows.
func (v *View) Report() *Report { return v.report }
