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

var (
	// ErrNotArchive is returned for a snapshot without a manifest.
	ErrNotArchive = finding.WithHint(errors.New("not an archive of a logical cluster"),
		"give a file that \"etcdshift kcp extract\" made")
	// ErrFormat is returned for an archive of a format that is not Format, a newer one mostly.
	ErrFormat = finding.WithHint(errors.New("archive of another format"),
		"read it with the etcdshift that made it, or a newer one")
	// ErrDamaged is returned for an archive that is not as it was made: its records differ from its
	// manifest, or etcdshift writes no such manifest.
	ErrDamaged = finding.WithHint(errors.New("archive is damaged"),
		"try another copy of the archive, or extract it again")
	// ErrIsArchive is returned for an archive as the input of a change: its manifest would become
	// wrong.
	ErrIsArchive = errors.New("the file is an archive of a logical cluster, and not the snapshot of a shard")
	// ErrUnfit is returned for a manifest that cannot be written: Open would not take it.
	ErrUnfit = errors.New("no archive can say so")
)

const (
	noteManifest = "manifest"
	noteDigest   = "manifest.sha256"
	// maxManifest is the maximum size of a manifest; 2,000 logical clusters of 40 resources each
	// need 25 MiB.
	maxManifest = 64 << 20
)

// Notes returns the notes of the archive with manifest m, for snapshot.Content. The error wraps
// ErrUnfit for a manifest that Open would not take.
func (m *Manifest) Notes() (map[string][]byte, error) {
	text, err := m.text()
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if _, err := read(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return map[string][]byte{noteManifest: text, noteDigest: fmt.Appendf(nil, "%x", sha256.Sum256(text))}, nil
}

// Open reads the manifest of an archive; Check checks the rest. The error wraps ErrNotArchive,
// ErrFormat or ErrDamaged, or is that of reading the file.
func Open(ctx context.Context, s *snapshot.Snapshot) (*Manifest, error) {
	text, err := s.Note(ctx, noteManifest)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, fmt.Errorf("%s: %w", s.Path(), ErrNotArchive)
	}
	digest, err := s.Note(ctx, noteDigest)
	if err != nil {
		return nil, err
	}
	m, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path(), err)
	}
	if string(digest) != fmt.Sprintf("%x", sha256.Sum256(text)) {
		return nil, fmt.Errorf("%s: %w: the manifest was changed after it was written: its SHA-256 is another", s.Path(), ErrDamaged)
	}
	return m, nil
}

// Refuse returns ErrIsArchive for an archive, sound or not.
func Refuse(ctx context.Context, s *snapshot.Snapshot) error {
	_, err := Open(ctx, s)
	switch {
	case errors.Is(err, ErrNotArchive):
		return nil
	case err == nil, errors.Is(err, ErrFormat), errors.Is(err, ErrDamaged):
		return ErrIsArchive
	}
	return err
}

// text is the one way to write m, to the byte.
func (m *Manifest) text() ([]byte, error) { return json.MarshalIndent(m, "", "  ") }

// parse is read for a stored manifest: an error wraps ErrFormat or ErrDamaged.
func parse(text []byte) (*Manifest, error) {
	m, err := read(text)
	if err != nil && !errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, err
}

// read parses a manifest. Of another format nothing else is checked. Text that differs from the
// output of Notes is refused: readers differ on fields that stand twice or are spelled otherwise.
func read(text []byte) (*Manifest, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes is more than %d", len(text), maxManifest)
	}
	var self struct {
		APIVersion, Kind string
		Format           int
	}
	if err := json.Unmarshal(text, &self); err != nil {
		return nil, fmt.Errorf("manifest: %s", jsonReason(err))
	}
	if self.APIVersion != APIVersion || self.Kind != Kind || self.Format != Format {
		return nil, fmt.Errorf("%w: %.64q %.64q, format %d; this program knows %q %q, format %d",
			ErrFormat, self.APIVersion, self.Kind, self.Format, APIVersion, Kind, Format)
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("manifest: %s", jsonReason(err))
	}
	err := m.validate()
	if again, _ := m.text(); err == nil && !bytes.Equal(again, text) {
		err = errors.New("it is not written as one is: a field of it stands there twice, is unknown, or is spelled otherwise")
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// jsonReason is the reason of an error of encoding/json, bounded: it may quote the text.
func jsonReason(err error) string { return fmt.Sprintf("%.200s", err.Error()) }
