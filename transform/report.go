package transform

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// APIVersion is the apiVersion of all documents of this program, in the form of Kubernetes.
const APIVersion = "etcdshift/v1"

// Outcome is the result of a run.
type Outcome string

// The outcomes of a run, as the report spells them.
const (
	Written   Outcome = "written"
	Unchanged Outcome = "unchanged"
	Planned   Outcome = "planned"
	Refused   Outcome = "refused"
	Failed    Outcome = "failed"
)

// Report lists the findings, the plan and the results of a run. In its JSON, which other programs
// read, the fields of all parts are in one object. A report holds no Secret values.
type Report struct {
	Head
	Sections []Section // of one transform only
	Body
	Appendix      Section  // nil for none
	Restored      Section  // the data directories restored from the output; nil for none
	BeforeRestore int      // number of Steps before the restore
	allow         []string // codes

	// CountUIDs counts UIDs instead of listing them: see Options.
	CountUIDs         bool
	SeenUIDs, NewUIDs int // counted: UIDs that clients saw before, and other UIDs
}

// Head names the command, the result and the files of a run.
type Head struct {
	APIVersion string `json:"apiVersion"` // "etcdshift/v1"
	Kind       string `json:"kind"`       // "Report"
	Command    string `json:"command"`
	Tool       *Tool  `json:"tool,omitempty"` // set by the program that runs the migration
	// unchanged: OUT is a copy of the input; planned: a dry run; refused, failed: nothing was
	// written
	Outcome Outcome            `json:"outcome"`
	Error   string             `json:"error,omitempty"` // why a run failed
	Time    string             `json:"time,omitempty"`  // RFC 3339, for new objects
	ETag    string             `json:"etag,omitempty"`  // of IN in the list of a fleet; set by fleet run
	Input   snapshot.FileInfo  `json:"input"`
	Output  *snapshot.FileInfo `json:"output,omitempty"` // missing if nothing was written
	Kinds   []KindCount        `json:"kinds"`
	// of import and kcp import: the archive, or the shard of --orphans-from
	Archive *snapshot.FileInfo `json:"archive,omitempty"`
}

// Body lists the changes of records.
type Body struct {
	Changes    Changes           `json:"changes"`
	Renamed    []Rename          `json:"renamed"`
	UIDs       []UID             `json:"uids"`
	References []Reference       `json:"references"`
	Problems   []finding.Finding `json:"problems"`
	Steps      []string          `json:"steps"`   // manual steps, in order
	Restore    []string          `json:"restore"` // the commands to run next, one for each member
	// Saved has removed objects and the old fields of changed objects, by key, without credentials.
	Saved map[string]json.RawMessage `json:"saved,omitempty"`
}

// Tool names the program that wrote a document.
type Tool struct {
	Name string `json:"name"`
	// a release, or the time and id of the built commit; (devel) if unknown
	Version string `json:"version"`
}

// KindCount counts the records of one kind.
type KindCount struct {
	Kind      string `json:"kind"`
	From      string `json:"from"` // group/version
	To        string `json:"to"`
	Migrated  int    `json:"migrated"`  // records
	Unchanged int    `json:"unchanged"` // already in the new form
	Skipped   int    `json:"skipped"`   // unchanged, each with a problem
	Conflicts int    `json:"conflicts"`
	Deleted   int    `json:"deleted,omitempty"` // each with a problem
}

// Changes counts records by the kind of change.
type Changes struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
	Deleted int `json:"deleted"`
}

// Rename is an object with a new name.
type Rename struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// UID has three UIDs of an object: as stored before, as clients saw it before, as written.
type UID struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Stored    string `json:"stored"`
	Seen      string `json:"seen"`
	Written   string `json:"written"`
}

// Reference is an owner reference that was rewritten. From and To are "apiVersion/uid".
type Reference struct {
	Key       string `json:"key"`
	OwnerKind string `json:"ownerKind"`
	OwnerName string `json:"ownerName"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// NewReport returns the empty report of a command that continues after problems with the allowed
// codes. Lists are empty, not null, in its JSON.
func NewReport(command string, allowed ...string) *Report {
	return &Report{
		allow: allowed,
		Head:  Head{APIVersion: APIVersion, Kind: "Report", Command: command, Kinds: []KindCount{}},
		Body: Body{
			Renamed: []Rename{}, UIDs: []UID{}, References: []Reference{}, Problems: []finding.Finding{},
			Steps: []string{}, Restore: []string{},
			Saved: map[string]json.RawMessage{},
		},
	}
}

// AddUID lists a UID, or counts it.
func (r *Report) AddUID(u UID) {
	switch {
	case !r.CountUIDs:
		r.UIDs = append(r.UIDs, u)
	case u.Seen == u.Written:
		r.SeenUIDs++
	default:
		r.NewUIDs++
	}
}

// AddStep appends a manual step, once.
func (r *Report) AddStep(format string, args ...any) {
	if step := fmt.Sprintf(format, args...); !slices.Contains(r.Steps, step) {
		r.Steps = append(r.Steps, step)
	}
}

// AddStepBefore is AddStep for a step before the restore.
func (r *Report) AddStepBefore(format string, args ...any) {
	if step := fmt.Sprintf(format, args...); !slices.Contains(r.Steps, step) {
		r.Steps = slices.Insert(r.Steps, r.BeforeRestore, step)
		r.BeforeRestore++
	}
}

// Errors counts the problems of level error, and the problems that refuse the run. Allowed problems
// with the outcome finding.WentOn are not counted.
func (r *Report) Errors() (all, refusing int) {
	for _, p := range r.Problems {
		if p.Level != finding.Error || p.Outcome == finding.WentOn {
			continue
		}
		all++
		if p.Outcome == finding.Refused {
			refusing++
		}
	}
	return all, refusing
}

// AddReference lists a changed owner reference of the object at key.
func (r *Report) AddReference(key string, from, to encoding.OwnerReference) {
	from.Controller, from.BlockOwnerDeletion = to.Controller, to.BlockOwnerDeletion
	if from != to {
		r.References = append(r.References, Reference{
			Key: key, OwnerKind: to.Kind, OwnerName: to.Name, From: from.APIVersion + "/" + from.UID,
			To: to.APIVersion + "/" + to.UID,
		})
	}
}
