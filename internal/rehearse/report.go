package rehearse

import (
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/finding"
)

// Report is the result of a rehearsal.
type Report struct {
	Found      finding.Report
	Versions   Versions
	Restored   Restored
	Steps      []Step
	Kinds      []Kind
	NotChecked []NotChecked
}

// Versions are those of the servers. An empty one did not run.
type Versions struct {
	Etcd              string `json:"etcd"`
	Kubernetes        string `json:"kubernetes,omitempty"`        // of the API server
	APIServer         string `json:"apiServer,omitempty"`         // "apiextensions-apiserver" (ours) or "kube-apiserver"
	ControllerManager string `json:"controllerManager,omitempty"` // that ran the garbage collector
}

// Restored is what etcd holds after the restore, before an API server writes to it.
type Restored struct {
	BumpRevision int64    `json:"bumpRevision"` // of etcdutl snapshot restore, with --mark-compacted
	Revision     int64    `json:"revision"`     // of etcd
	Keys         int      `json:"keys"`
	HashKV       string   `json:"hashKV"` // as "etcdctl endpoint hashkv" prints it, the same of each member
	Members      []string `json:"members"`
}

// Step is a part of a rehearsal.
type Step struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail"` // in a few words
}

// Kind is what was tried with the objects of a resource.
type Kind struct {
	Resource    string   `json:"resource"`             // such as "widgets.example.com"
	Listed      []string `json:"versions"`             // at which all objects were listed
	Objects     int      `json:"objects"`              // in the list; those that could be read, if it fails
	Tried       int      `json:"tried"`                // objects that an update and an apply were tried with
	Terminating int      `json:"terminating"`          // objects that are being deleted: they are not tried
	Failed      int      `json:"failed"`               // objects that could not be read, updates and applies that were refused
	NotChecked  string   `json:"notChecked,omitempty"` // why, of the first thing that could not be checked
}

// NotChecked is something of which a rehearsal says nothing.
type NotChecked struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Passed is whether nothing was found that fails.
func (r *Report) Passed() bool { return !r.Found.AtLeast(finding.Warning) }

func (r *Report) notChecked(what, reason string) {
	r.NotChecked = append(r.NotChecked, NotChecked{what, reason})
}

// timed adds a step that began at a time.
func (r *Report) timed(name string, began time.Time, detail string, passed bool) {
	seconds := float64(time.Since(began).Milliseconds()) / 1000
	r.Steps = append(r.Steps, Step{name, passed, seconds, detail})
}

// Differences is what fails after a change and did not before, and the other way round.
type Differences struct {
	Broken []finding.Finding // fails after the change alone
	Mended []finding.Finding // failed before it alone
}

// Compare compares rehearsals of a snapshot before and after a change.
func Compare(before, after *Report) (d Differences) {
	return Differences{Broken: lacking(after, before), Mended: lacking(before, after)}
}

// lacking returns the findings of one report that another has not.
func lacking(of, in *Report) (found []finding.Finding) {
	has := map[failure]bool{}
	for _, f := range in.Found.Findings {
		has[failureOf(f)] = true
	}
	for _, f := range of.Found.Findings {
		if !has[failureOf(f)] {
			found = append(found, f)
		}
	}
	return found
}

// failure is what two findings of the same failure have in common.
type failure struct {
	code      *finding.Code
	key, what string
}

// failureOf tells failures apart: one without a key by its reason; of a record by how the reason
// begins, such as "get at v1", "undecodable" or "member m1"; a refused write by the key alone, as
// it is tried at the storage version, which a change may change, and the server's text varies.
func failureOf(f finding.Finding) failure {
	switch {
	case f.Key == "":
		return failure{f.Code, "", f.Reason}
	case f.Code == codeUpdate || f.Code == codeApply:
		return failure{f.Code, f.Key, ""}
	}
	what, _, found := strings.Cut(f.Reason, ": ")
	if !found {
		what = ""
	}
	return failure{f.Code, f.Key, what}
}
