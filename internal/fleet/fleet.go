package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
)

// Kind is the kind of the document.
const Kind = "Fleet"

const (
	mark       = ".fleet-" // in the name of a result, after the name of its snapshot
	mostListed = 100_000   // maximum completions of an indexed Job
	mostBytes  = 128 << 20 // of a list
	mostReason = 2000      // bytes of an error about a list or a report
)

// ErrNotFleet is the error for a file that is not a fleet list.
var ErrNotFleet = finding.WithLasting(errors.New("is no list that \"etcdshift fleet list\" made"),
	`give the file that "etcdshift fleet list" wrote`)

// Fleet is a named run over snapshots.
type Fleet struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Tool       transform.Tool `json:"tool"`
	// of the run: results of a snapshot begin with its path, ".fleet-" and this name
	Name      string     `json:"name"`
	Place     string     `json:"place"`     // a bucket with a prefix, or a folder
	Snapshots []Snapshot `json:"snapshots"` // by path; the index of a Job counts from 0
	LeftOut   LeftOut    `json:"leftOut"`   // other files in the place
	files     files      // access to the place
}

// Snapshot is a file of a fleet.
type Snapshot struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	ETag  string `json:"etag"` // of an object; for a file its modification time and size
}

// LeftOut counts files left out of a list.
type LeftOut struct {
	Results   int `json:"results"`   // of fleet runs
	Unmatched int `json:"unmatched"` // not matched by --match
	Older     int `json:"older"`     // than the newest in their folder, with --newest
	Other     int `json:"other"`     // hidden or empty files, lists and reports (.json), and irregular files
}

// Results returns the prefix of the result paths of a snapshot.
func (f *Fleet) Results(s Snapshot) string { return s.Path + mark + f.Name }

var nameSyntax = pattern.New(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName returns an error for an invalid run name.
func CheckName(name string) error {
	if !nameSyntax().MatchString(name) {
		return fmt.Errorf("%.60q is no name of a run; it takes up to 40 of a-z, 0-9 and -, such as calico-v3", name)
	}
	return nil
}

// Bytes returns the total size of all snapshots.
func (f *Fleet) Bytes() (sum int64) {
	for _, s := range f.Snapshots {
		sum += s.Bytes
	}
	return sum
}

// Largest returns the first snapshot with the largest scratch space.
func (f *Fleet) Largest() Snapshot {
	return slices.MaxFunc(f.Snapshots, func(a, b Snapshot) int {
		return cmp.Compare(a.needs().Scratch,
			b.needs().Scratch)
	})
}

// Write writes the list to a path that must not exist.
func (f *Fleet) Write(ctx context.Context, path string) error {
	var text bytes.Buffer
	if err := render.JSON(&text, f); err != nil {
		return err
	}
	files, err := filesAt(path)
	if err != nil {
		return err
	}
	return files.write(ctx, path, &text)
}

// Read reads a list.
func Read(ctx context.Context, path string) (*Fleet, error) {
	files, err := filesAt(path)
	if err != nil {
		return nil, err
	}
	text, err := files.read(ctx, path, mostBytes)
	if err != nil {
		return nil, err
	}
	f := &Fleet{}
	if err = json.Unmarshal(text, f); err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", path, ErrNotFleet, reason(err))
	}
	f.files, err = filesAt(f.Place)
	return f, err
}

// reason returns the beginning of err, which may quote a whole value.
func reason(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), mostReason)], "")
}

// check checks assumptions of other code: each index has its own snapshot, and results stay in the
// place.
func (f *Fleet) check() error {
	switch {
	case f.APIVersion != transform.APIVersion || f.Kind != Kind:
		return fmt.Errorf("apiVersion %.40q, kind %.40q", f.APIVersion, f.Kind)
	case CheckName(f.Name) != nil:
		return CheckName(f.Name)
	case len(f.Snapshots) == 0 || len(f.Snapshots) > mostListed:
		return fmt.Errorf("it has %d snapshots", len(f.Snapshots))
	}
	for i, s := range f.Snapshots {
		switch err := nameable(s.Path); {
		case err != nil:
			return fmt.Errorf("snapshot %d, %.200q, cannot be in a list: %w", i, s.Path, err)
		case !within(f.Place, s.Path):
			return fmt.Errorf("snapshot %d, %.200q, is not in %.200q", i, s.Path, f.Place)
		case i > 0 && s.Path <= f.Snapshots[i-1].Path:
			return fmt.Errorf("snapshot %d, %.200q, is not in order", i, s.Path)
		case s.Bytes < 0 || s.ETag == "":
			return fmt.Errorf("snapshot %d, %.200q, has no size or no etag", i, s.Path)
		}
	}
	return nil
}
