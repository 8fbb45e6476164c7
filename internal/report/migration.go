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

// Fits is the relation between a migration and a snapshot, by the SHA-256 of the files.
type Fits string

// Relations between a migration and a snapshot.
const (
	FitsOutput Fits = "output" // the migration wrote the snapshot
	FitsInput  Fits = "input"  // the migration read the snapshot
	FitsNot    Fits = "no"     // the migration concerns other files
)

// Migration is the report of a migration (--report): its head, and the lengths of its lists.
type Migration struct {
	transform.Head
	Fits     Fits              `json:"fits"` // by the SHA-256 of the files
	Changes  transform.Changes `json:"changes"`
	Problems []finding.Finding `json:"problems"`
	Steps    []string          `json:"steps"`   // remaining manual steps, in order
	Restore  []string          `json:"restore"` // restore commands, one per member
	Lists    []Length          `json:"lists"`   // lengths of the other lists of the report, by name
}

// Length is the length of a list.
type Length struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// ErrNoMigration is the error for a file that is not a migration report written by --report.
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

// parseMigration parses a report, and keeps only the lengths of lists that are not shown.
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
		if p.Level != finding.Warning && p.Level != finding.Info { // including levels of newer programs
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

// length is the number of elements of a JSON array; 0 for other values.
type length int

// UnmarshalJSON counts the elements.
func (l *length) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("[")) {
		return nil
	}
	var all []struct{}
	_ = json.Unmarshal(text, &all) // counts elements of any type
	*l = length(len(all))
	return nil
}
