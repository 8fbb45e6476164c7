package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/transform"
)

// Fits says how a migration and a snapshot belong together, by the SHA-256 of the files.
type Fits string

// The ways to belong together.
const (
	FitsOutput Fits = "output" // the snapshot is what the migration wrote
	FitsInput  Fits = "input"  // the snapshot is what the migration read
	FitsNot    Fits = "no"     // the migration was of other files
)

// Migration is what a migration reported with --report: its head, and its lists by their length.
type Migration struct {
	transform.Head
	Fits     Fits              `json:"fits"` // by the SHA-256 of the files
	Changes  transform.Changes `json:"changes"`
	Problems []finding.Finding `json:"problems"`
	Steps    []string          `json:"steps"`   // what is left to do by hand, in order
	Restore  []string          `json:"restore"` // the commands to run next, one a member
	Lists    []Length          `json:"lists"`   // the other lists of the report, by name
}

// Length is the length of a list.
type Length struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// ErrNoMigration is the error for a file that is no report of a migration.
var ErrNoMigration = errors.New("is no report of a migration, as --report writes it")

func (out *Report) readMigration(ctx context.Context, r *inspect.Reader, o Options) error {
	if o.Migration == nil {
		return nil
	}
	hide, err := r.Secrets(ctx)
	if err != nil {
		return err
	}
	m, err := parseMigration(o.Migration, hide)
	if err != nil {
		return err
	}
	sum := out.Status.SHA256
	switch {
	case m.Output != nil && m.Output.SHA256 == sum:
		m.Fits = FitsOutput
	case m.Input.SHA256 == sum:
		m.Fits = FitsInput
	default:
		m.Fits = FitsNot
	}
	out.Migration = m
	return nil
}

// parseMigration reads a report. Of lists that are not shown only the length is kept.
func parseMigration(text []byte, hide *redact.Shared) (*Migration, error) {
	m, lists := &Migration{}, map[string]length{}
	if err := cmp.Or(json.Unmarshal(text, &lists), json.Unmarshal(text, m)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMigration, err)
	}
	if m.APIVersion != transform.APIVersion || m.Kind != "Report" || m.Command == "" {
		return nil, fmt.Errorf("%w: apiVersion %.40q, kind %.40q", ErrNoMigration, m.APIVersion, m.Kind)
	}
	m.Error = hide.Text(m.Error)
	for i := range m.Steps { // not Restore: --initial-cluster-token is no secret
		m.Steps[i] = hide.Text(m.Steps[i])
	}
	for i := range m.Problems {
		p := &m.Problems[i]
		p.Code = cmp.Or(p.Code, &finding.Code{})
		p.Reason, p.Outcome = hide.Text(p.Reason), finding.Outcome(hide.Text(string(p.Outcome)))
		if p.Level != finding.Warning && p.Level != finding.Info { // one of a newer program too
			p.Level = finding.Error
		}
	}
	m.Lists = []Length{}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		shown := slices.Contains([]string{"kinds", "problems", "steps", "restore"}, name)
		if n := int(lists[name]); n > 0 && !shown {
			m.Lists = append(m.Lists, Length{name, n})
		}
	}
	return m, nil
}

// length is the number of elements of a JSON array, which are not kept; 0 of any other value.
type length int

// UnmarshalJSON counts.
func (l *length) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("[")) {
		return nil
	}
	var all []struct{}
	_ = json.Unmarshal(text, &all) // elements of any type are counted
	*l = length(len(all))
	return nil
}
