package transform

import (
	"encoding/json"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run, as the report spells them.
const (
	Written   Outcome = "written"
	Unchanged Outcome = "unchanged"
	Planned   Outcome = "planned"
	Refused   Outcome = "refused"
	Failed    Outcome = "failed"
)

// Report is what a run found, planned and did. Other programs rely on its JSON fields; it holds no Secret values.
type Report struct {
	APIVersion      string                     `json:"apiVersion"` // "etcdshift/v1"
	Kind            string                     `json:"kind"`       // "Report"
	Command         string                     `json:"command"`
	Tool            *Tool                      `json:"tool,omitempty"` // set by who runs the migration
	Outcome         Outcome                    `json:"outcome"`
	Error           string                     `json:"error,omitempty"`
	Time            string                     `json:"time,omitempty"` // RFC 3339, given to new objects
	Input           FileInfo                   `json:"input"`
	Output          *FileInfo                  `json:"output,omitempty"`
	Kinds           []KindCount                `json:"kinds"`
	CustomResources []CustomResource           `json:"customResources,omitempty"` // of migrate storage-versions: one a CustomResourceDefinition
	Archive         *FileInfo                  `json:"archive,omitempty"`         // of cluster import: where the records come from
	Clusters        []ClusterReceipt           `json:"clusters,omitempty"`        // of cluster purge and import: what went out or came in
	Rest            *Receipt                   `json:"rest,omitempty"`            // of the same: all other live records, equal in input and output
	Changes         Changes                    `json:"changes"`
	Renamed         []Rename                   `json:"renamed"`
	UIDs            []UID                      `json:"uids"`
	References      []Reference                `json:"references"`
	Problems        []finding.Finding          `json:"problems"`
	Steps           []string                   `json:"steps"`           // what is left to do by hand, in order
	BeforeRestore   int                        `json:"-"`               // how many of Steps come before the restore
	Restore         []string                   `json:"restore"`         // the commands to run next, one a member
	Saved           map[string]json.RawMessage `json:"saved,omitempty"` // objects that were deleted and may be wanted back, by key
	allow           map[string]bool            // codes
}

// Tool says which program made a report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// FileInfo identifies a snapshot file.
type FileInfo struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"` // of the whole file
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`  // live
	Bytes    int64  `json:"bytes"` // of the file
}

// KindCount counts the records of one kind.
type KindCount struct {
	Kind      string `json:"kind"`
	From      string `json:"from"` // group/version
	To        string `json:"to"`
	Migrated  int    `json:"migrated"`
	Unchanged int    `json:"unchanged"` // already there in the new form
	Skipped   int    `json:"skipped"`   // left alone, each with a problem
	Conflicts int    `json:"conflicts"`
}

// CustomResource is what became of the objects of one CustomResourceDefinition.
type CustomResource struct {
	Prefix         string         `json:"prefix"` // of the storage that it lies in, "/registry"
	CRD            string         `json:"crd"`    // PLURAL.GROUP
	Chosen         bool           `json:"chosen"` // false: the options left it out
	StorageVersion string         `json:"storageVersion"`
	Found          map[string]int `json:"found"` // objects by the version they were stored at, "" where nobody can tell
	Rewritten      int            `json:"rewritten"`
	Unchanged      int            `json:"unchanged"`
	Refused        int            `json:"refused"`       // left as they are, each with a problem
	ManagedFields  int            `json:"managedFields"` // objects with managedFields entries that were relabelled
	StoredVersions StoredVersions `json:"storedVersions"`
}

// StoredVersions is status.storedVersions of a CustomResourceDefinition.
type StoredVersions struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
	Kept   string   `json:"kept,omitempty"` // why After holds more than the storage version
}

// ClusterReceipt is what became of a logical cluster of kcp: the records that went out of the input, or came into the output.
type ClusterReceipt struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Receipt        // of its records
	Copies  int    `json:"copies"` // records of it in a cache of the same file
	// CopiesMoved of those records were given to the shard ToShard, under keys of its own.
	CopiesMoved int    `json:"copiesMoved,omitempty"`
	ToShard     string `json:"toShard,omitempty"`
}

// Receipt counts records and has their digest, as docs/archive.md says it is computed.
type Receipt struct {
	Keys   int    `json:"keys"`
	Bytes  int64  `json:"bytes"` // of keys and values as they are stored
	SHA256 string `json:"sha256"`
}

// Changes counts records by what becomes of them.
type Changes struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
	Deleted int `json:"deleted"`
}

// Rename is an object that has another name afterwards.
type Rename struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// UID is what became of an object's UID: as stored before, as clients saw it before, as written.
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

// NewReport returns an empty report of a command that goes on although there are problems with the allowed codes. Lists are empty,
// not null, in its JSON.
func NewReport(command string, allowed ...string) *Report {
	allow := map[string]bool{}
	for _, code := range allowed {
		allow[code] = true
	}
	return &Report{
		allow:      allow,
		APIVersion: "etcdshift/v1", Kind: "Report", Command: command,
		Kinds: []KindCount{}, Renamed: []Rename{}, UIDs: []UID{}, References: []Reference{}, Problems: []finding.Finding{}, Steps: []string{}, Restore: []string{},
	}
}

// AddStep appends a thing to do by hand, once.
func (r *Report) AddStep(format string, args ...any) {
	step := fmt.Sprintf(format, args...)
	for _, s := range r.Steps {
		if s == step {
			return
		}
	}
	r.Steps = append(r.Steps, step)
}

// Save keeps a deleted object (JSON) under its key.
func (r *Report) Save(key string, object json.RawMessage) {
	if r.Saved == nil {
		r.Saved = map[string]json.RawMessage{}
	}
	r.Saved[key] = object
}

// Errors counts the problems above a warning, but for those that were allowed and left nothing alone, and those of them that were
// not allowed.
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
