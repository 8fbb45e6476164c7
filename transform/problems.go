package transform

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/keys"
)

// findings holds the findings of a run or a step.
type findings struct {
	report        *Report
	problems      map[problemID]int // index in the report
	undecryptable *sync.Map         // see overlay
}

// Raise reports a finding about the record at key. goOn is false if the finding refuses the run.
// After an allowed finding, the caller continues as the code describes. Findings of one code about
// one record become one problem.
func (v *findings) Raise(key string, f *finding.Finding) (goOn bool) {
	p := v.report.decide(key, f)
	if p.Level == finding.Error {
		p.Reason = v.explain(p)
	}
	v.list(p)
	return p.Outcome != finding.Refused
}

func (v *findings) list(p finding.Finding) {
	id := problemID{p.Key, p.Code.Name, p.Level, p.Outcome}
	if at, there := v.problems[id]; there && p.Key != "" {
		v.merge(&v.report.Problems[at], p)
	} else {
		v.problems[id] = len(v.report.Problems)
		v.report.Problems = append(v.report.Problems, p)
	}
}

// Raise is [View.Raise] without merging: a repeated finding is reported repeatedly.
func (r *Report) Raise(key string, f *finding.Finding) (goOn bool) {
	p := r.decide(key, f)
	r.Problems = append(r.Problems, p)
	return p.Outcome != finding.Refused
}

// decide returns f with its key and its outcome.
func (r *Report) decide(key string, f *finding.Finding) finding.Finding {
	p := *f
	p.Key = key
	switch {
	case p.Outcome != "":
	case p.Level != finding.Error:
		p.Outcome = finding.Noted
	case p.Code.Allowed != "" && slices.Contains(r.allow, p.Code.Name):
		p.Outcome = p.Code.Allowed
	default:
		p.Outcome = finding.Refused
	}
	return p
}

func codeOf(err error) *finding.Code {
	if errors.Is(err, encoding.ErrEncrypted) {
		return finding.Encrypted
	}
	return finding.Undecodable
}

// Unreadable returns the finding for a value that cannot be read.
func Unreadable(err error) *finding.Finding { return codeOf(err).Because("%v", err) }

// Readable reports whether an API server can read a value as the object of its key; if not,
// Readable raises a finding. Encrypted values and unknown kinds pass.
func (v *findings) Readable(e *Entry) bool {
	err := e.Check()
	if err == nil || e.Undecryptable != nil || errors.Is(err, native.ErrUnknownKind) {
		return true
	}
	v.Raise(string(e.Key), Unreadable(err))
	return false
}

// CheckValue returns why no API server can read a decrypted value. Unknown kinds pass.
func CheckValue(key keys.Key, value []byte) error {
	if err := inspect.CheckValue(key, value); !errors.Is(err, native.ErrUnknownKind) {
		return err
	}
	return nil
}

// noteUndecryptable remembers why a value cannot be decrypted, for later findings about the value.
func (v *overlay) noteUndecryptable(e *Entry) {
	if e != nil && e.Undecryptable != nil {
		v.undecryptable.Store(string(e.Key), e.Undecryptable)
	}
}

// why returns why the value of a key cannot be decrypted; nil for other values.
func (v *findings) why(key string) error {
	why, _ := v.undecryptable.Load(key)
	err, _ := why.(error)
	return err
}

// explain adds to the reason of an encrypted value why no key decrypts the value.
func (v *findings) explain(p finding.Finding) string {
	why, reason := v.why(p.Key), p.Reason
	if p.Code.Name != finding.Encrypted.Name || why == nil || strings.Contains(reason, why.Error()) {
		return reason
	}
	for at := range reason { // no repetition if the end of reason is the beginning of why
		if strings.HasPrefix(why.Error(), reason[at:]) {
			return reason[:at] + why.Error()
		}
	}
	return reason + ": " + why.Error()
}

// merge adds the reason of p to a problem, unless the problem has the reason already.
func (v *findings) merge(old *finding.Finding, p finding.Finding) {
	if why := v.why(p.Key); p.Code.Name == finding.Encrypted.Name && why != nil &&
		strings.Contains(old.Reason, why.Error()) {
		p.Reason = strings.TrimSuffix(strings.TrimSuffix(p.Reason, why.Error()), ": ")
	}
	unreadable := p.Code == finding.Encrypted || p.Code == finding.Undecodable
	if p.Reason == "" || unreadable && strings.Contains(old.Reason, p.Reason) || len(old.Reason) > maxReasons ||
		slices.Contains(strings.Split(old.Reason, reasonSeparator), p.Reason) {
		return
	}
	old.Reason += reasonSeparator + p.Reason
}

const (
	reasonSeparator = "; "
	maxReasons      = 4096 // bytes of reasons in one problem
)

// problemID identifies findings that become one problem.
type problemID struct {
	key, code string
	level     finding.Level
	outcome   finding.Outcome
}

// Save keeps an object, or fields of an object, in the report for a later restore. A report holds
// no credentials: annotations with a credential are removed, other credentials are replaced by
// their length, and a step in the report mentions the removal.
func (v *View) Save(ctx context.Context, key []byte, fields map[string]any) error {
	hide, err := v.reader.Secrets(ctx)
	if err != nil {
		return err
	}
	fields = runtime.DeepCopyJSON(fields)
	if hide.Object(key, fields) {
		meta, _ := fields["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		maps.DeleteFunc(annotations, func(_ string, value any) bool { return redact.Hidden(value) })
		v.report.AddStep("the report keeps %s without its credentials, such as the last-applied annotation: the "+
			"input has them", key)
	}
	saved, err := json.Marshal(fields)
	v.report.Saved[string(key)] = saved
	return err
}

// Report returns the report of the run. The transform may add to the report.
func (v *findings) Report() *Report { return v.report }
