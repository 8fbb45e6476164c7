package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// The head of every manifest. Any change of a format, even an additional field, changes Format.
const (
	APIVersion = "etcdshift/v1"
	Format     = 1
)

// The kinds of archives.
const (
	KindClusters = "LogicalClusterArchive" // of Manifest
	KindPart     = "PartArchive"           // of PartManifest
)

var (
	// ErrNotArchive is returned for a snapshot without a manifest.
	ErrNotArchive = errors.New("not an archive")
	// ErrKind is returned for an archive of another known kind.
	ErrKind = errors.New("archive of another kind")
	// ErrFormat is returned for an archive of another format than Format, usually a newer one.
	ErrFormat = finding.WithHint(errors.New("archive of another format"),
		"read it with the etcdshift that made it, or a newer one")
	// ErrDamaged is returned for a changed archive: its records differ from its manifest, or
	// etcdshift never writes such a manifest.
	ErrDamaged = finding.WithHint(errors.New("archive is damaged"),
		"try another copy of the archive, or extract it again")
	// ErrIsArchive is returned for an archive as the input of a change: the change would invalidate
	// the manifest.
	ErrIsArchive = finding.WithHint(errors.New("the file is an archive, not a snapshot of an etcd"),
		"give a snapshot of an etcd; \"import\" and \"kcp import\" add an archive to one, \"crop\" makes one of a part")
	// ErrUnfit is returned for a manifest that cannot be written, since Open would refuse it.
	ErrUnfit = errors.New("no archive can say so")
)

const (
	noteManifest = "manifest"
	noteDigest   = "manifest.sha256"
	// maxManifest is the maximum size of a manifest; 2,000 logical clusters of 40 resources each
	// need 25 MiB.
	maxManifest = 64 << 20
)

// document is a manifest.
type document interface {
	kind() string
	maker() string   // the command that writes such archives
	validate() error // checks the manifest without its records; quotes at most a name
}

func (m *Manifest) kind() string      { return KindClusters }
func (m *Manifest) maker() string     { return "kcp extract" }
func (m *PartManifest) kind() string  { return KindPart }
func (m *PartManifest) maker() string { return "extract" }

// Notes returns the notes of the archive with manifest m, for snapshot.Content. The error wraps
// ErrUnfit for a manifest that Open would refuse.
func (m *Manifest) Notes() (map[string][]byte, error) { return notes(m, &Manifest{}) }

// Notes returns the notes of the archive with manifest m, for snapshot.Content. The error wraps
// ErrUnfit for a manifest that OpenPart would refuse.
func (m *PartManifest) Notes() (map[string][]byte, error) { return notes(m, &PartManifest{}) }

// notes returns the notes of an archive; again is an empty manifest of the same kind.
func notes(m, again document) (map[string][]byte, error) {
	text, err := text(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := read(text, again); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return map[string][]byte{noteManifest: text, noteDigest: fmt.Appendf(nil, "%x", sha256.Sum256(text))}, nil
}

// Open reads the manifest of an archive of logical clusters; Check checks the rest. The error wraps
// ErrNotArchive, ErrKind, ErrFormat or ErrDamaged, or is a read error.
func Open(ctx context.Context, s *snapshot.Snapshot) (*Manifest, error) {
	m := &Manifest{}
	if err := open(ctx, s, m); err != nil {
		return nil, err
	}
	return m, nil
}

// open reads the manifest of an archive into m.
func open(ctx context.Context, s *snapshot.Snapshot, m document) error {
	text, err := manifest(ctx, s)
	if err != nil {
		return err
	}
	if text == nil {
		return finding.WithHint(fmt.Errorf("%s: %w", s.Path(), ErrNotArchive),
			"give a file that \"etcdshift "+m.maker()+"\" made")
	}
	digest, err := s.Note(ctx, noteDigest)
	if err != nil {
		return err
	}
	if err := parse(text, m); err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	if string(digest) != fmt.Sprintf("%x", sha256.Sum256(text)) {
		return fmt.Errorf("%s: %w: the manifest was changed after it was written: its SHA-256 is another",
			s.Path(), ErrDamaged)
	}
	return nil
}

// manifest returns the stored manifest, or nil. The file of a restored member keeps the manifest of
// the archive, and is no archive: it has members.
func manifest(ctx context.Context, s *snapshot.Snapshot) ([]byte, error) {
	text, err := s.Note(ctx, noteManifest)
	if err != nil || text == nil {
		return nil, err
	}
	cluster, err := s.Cluster(ctx)
	if len(cluster.Members) > 0 {
		return nil, nil
	}
	return text, err
}

// Refuse returns ErrIsArchive for an archive of any kind, sound or damaged.
func Refuse(ctx context.Context, s *snapshot.Snapshot) error {
	text, err := manifest(ctx, s)
	if err == nil && text != nil {
		err = ErrIsArchive
	}
	return err
}

// text returns m in its only allowed form, byte for byte.
func text(m document) ([]byte, error) { return json.MarshalIndent(m, "", "  ") }

// parse is read for a stored manifest: an error wraps ErrKind, ErrFormat or ErrDamaged.
func parse(text []byte, m document) error {
	err := read(text, m)
	if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrKind) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// read parses a manifest into m. For another kind or format, nothing else is checked. Text that
// differs from the output of Notes is refused: JSON parsers disagree on duplicate fields and on the
// case of field names.
func read(stored []byte, m document) error {
	if len(stored) > maxManifest {
		return fmt.Errorf("a manifest of %d bytes is more than %d", len(stored), maxManifest)
	}
	var self struct {
		APIVersion, Kind string
		Format           int
	}
	if err := json.Unmarshal(stored, &self); err != nil {
		return fmt.Errorf("manifest: %s", jsonReason(err))
	}
	if self.APIVersion == APIVersion && self.Kind != m.kind() {
		switch self.Kind {
		case KindClusters:
			return finding.WithHint(fmt.Errorf("%w: it has logical clusters of kcp", ErrKind),
				"\"etcdshift kcp import\" takes it")
		case KindPart:
			return finding.WithHint(fmt.Errorf("%w: it has a part of a snapshot, and no logical cluster", ErrKind),
				"\"etcdshift import\" takes it")
		}
	}
	if self.APIVersion != APIVersion || self.Kind != m.kind() || self.Format != Format {
		return fmt.Errorf("%w: %.64q %.64q, format %d; this program knows %q %q, format %d",
			ErrFormat, self.APIVersion, self.Kind, self.Format, APIVersion, m.kind(), Format)
	}
	if err := json.Unmarshal(stored, m); err != nil {
		return fmt.Errorf("manifest: %s", jsonReason(err))
	}
	err := m.validate()
	if again, _ := text(m); err == nil && !bytes.Equal(again, stored) {
		err = errors.New("it is not written as one is: a field of it stands there twice, is unknown, or is " +
			"spelled otherwise")
	}
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// jsonReason returns the text of an error of encoding/json, limited in length: the text may quote
// the manifest.
func jsonReason(err error) string { return fmt.Sprintf("%.200s", err.Error()) }
