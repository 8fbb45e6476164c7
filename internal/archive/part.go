package archive

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// PartManifest describes an archive of a selected part of a snapshot, in the notes of a [Manifest].
// The records are those of "crop" with the same selection. Lists are in ascending order.
type PartManifest struct {
	APIVersion string      `json:"apiVersion"` // "etcdshift/v1"
	Kind       string      `json:"kind"`       // "PartArchive"
	Format     int         `json:"format"`     // of the file: 1
	Origin     PartOrigin  `json:"origin"`
	Selection  Selection   `json:"selection"`
	Types      []TypeCount `json:"types"` // of all records, by name
	Needs      []Needed    `json:"needs"` // of the selected objects, by key
	Counts
}

// PartOrigin is the snapshot from which a part was extracted. Rest is computed with [Rest].
type PartOrigin struct {
	Prefixes []string `json:"prefixes"` // storage prefixes of the records
	SHA256   string   `json:"sha256"`   // of the snapshot file
	Revision int64    `json:"revision"`
	// every live record of the file except the selected records: those that "purge" leaves
	Rest Sum `json:"rest"`
}

// Selection is a command line that selects a part.
type Selection struct {
	Arguments  []string `json:"arguments"`  // TYPE, TYPE/NAME, NAME
	Namespaces []string `json:"namespaces"` // empty for all
	Selector   string   `json:"selector"`   // of labels
	Prefixes   []string `json:"prefixes"`   // of --prefix
	Needed     bool     `json:"needed"`     // with the needs that the origin has
}

// TypeCount counts the records of a type.
type TypeCount struct {
	Type  string `json:"type"` // "deployments.apps"; "" for keys of no type
	Keys  int    `json:"keys"`
	Bytes int64  `json:"bytes"` // of keys and stored values
}

// Needed is an object that is needed and not selected.
type Needed struct {
	Key     string `json:"key"`     // etcd key
	Is      State  `json:"is"`      // where it is
	By      string `json:"by"`      // key of the first object that needs it
	Objects int    `json:"objects"` // number of these objects
	Owner   bool   `json:"owner"`   // it owns one of them
}

// State is the place of a needed object.
type State string

// The states.
const (
	InFile  State = "left out" // in IN, and not in OUT
	Taken   State = "taken"    // in OUT: --needed
	Missing State = "missing"  // not in IN
)

// OpenPart opens and checks an archive of a part: the manifest, and its counts and digests of all
// records. The records of the part are the live records of s, below the prefixes of the origin. The
// error wraps ErrNotArchive, ErrKind for an archive of logical clusters, ErrFormat or ErrDamaged,
// or is a read error. The manifest is nil if unreadable. OpenPart does not wait for the file's own
// digest (snapshot.Snapshot.Digest).
func OpenPart(ctx context.Context, s *snapshot.Snapshot) (*PartManifest, error) {
	m, err := ReadPart(ctx, s)
	if err == nil {
		err = m.check(ctx, s)
	}
	return m, err
}

// ReadPart reads the manifest of an archive of a part, without its records. Errors are those of
// [OpenPart].
func ReadPart(ctx context.Context, s *snapshot.Snapshot) (*PartManifest, error) {
	m := &PartManifest{}
	if err := open(ctx, s, m); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *PartManifest) check(ctx context.Context, s *snapshot.Snapshot) error {
	leases, err := s.Leases(ctx)
	if err != nil {
		return err
	}
	tally := NewTally(m.Origin.Prefixes, leases)
	err = scan(ctx, s, func(rec *snapshot.Record) error {
		if !tally.Add(rec) {
			return fmt.Errorf("%w: key %.200q is below no storage prefix of the manifest", ErrDamaged, rec.Key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	has := tally.Counts()
	if err := differentCounts(&m.Counts, &has, len(leases)); err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	return checkRevision(ctx, s, m.Origin.Revision)
}

func (m *PartManifest) validate() error {
	v := &validation{}
	v.values("manifest", reflect.ValueOf(*m))
	o := m.Origin
	v.require(IsHash(o.SHA256) && o.Revision >= 1, "origin: sha256 or revision is not one")
	v.require(ascends(o.Prefixes), "origin: prefixes are not in order")
	for _, prefix := range o.Prefixes {
		v.require(!strings.HasSuffix(prefix, "/"), "origin: prefix %.64q ends with a slash", prefix)
	}
	v.require(ascends(stream.Mapped(m.Types, func(t TypeCount) string { return t.Type })), "types are not in order")
	parts := Sum{}
	for _, t := range m.Types {
		v.require(t.Keys >= 1 && t.Keys <= maxCount && t.Bytes >= 1 && t.Bytes <= maxCount,
			"type %.64q: keys or bytes is not one", t.Type)
		parts.Keys += t.Keys
		parts.Bytes += t.Bytes
	}
	v.require(parts.Bytes == m.AsStored.Bytes, "total: %d bytes as stored, but its types have %d", m.AsStored.Bytes,
		parts.Bytes)
	for _, n := range m.Needs {
		v.require(n.Objects >= 1 && (n.Is == InFile || n.Is == Taken || n.Is == Missing),
			"needed %.64q: objects or state is not one", n.Key)
	}
	v.counts(&m.Counts, parts.Keys)
	return v.err
}

// ascends reports whether the names are in ascending order, each once.
func ascends(names []string) bool {
	return slices.IsSorted(names) && len(slices.Compact(slices.Clone(names))) == len(names)
}

// Text returns s as a text of a manifest: quoted and shortened if a manifest cannot have s itself.
func Text(s string) string {
	if IsText(s) {
		return s
	}
	quoted := strconv.QuoteToASCII(s)
	return quoted[:min(len(quoted), maxText)]
}
