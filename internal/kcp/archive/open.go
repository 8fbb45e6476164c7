package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

var (
	// ErrNotArchive is returned for a snapshot without a manifest.
	ErrNotArchive = finding.WithHint(errors.New("not an archive of a logical cluster"),
		"give a file that \"etcdshift kcp extract\" made")
	// ErrFormat is returned for an archive of another format than Format, usually a newer one.
	ErrFormat = finding.WithHint(errors.New("archive of another format"),
		"read it with the etcdshift that made it, or a newer one")
	// ErrDamaged is returned for a changed archive: its records differ from its manifest, or
	// etcdshift never writes such a manifest.
	ErrDamaged = finding.WithHint(errors.New("archive is damaged"),
		"try another copy of the archive, or extract it again")
	// ErrIsArchive is returned for an archive as the input of a change: the change would invalidate
	// the manifest.
	ErrIsArchive = errors.New("the file is an archive of a logical cluster, and not the snapshot of a shard")
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

// Notes returns the notes of the archive with manifest m, for snapshot.Content. The error wraps
// ErrUnfit for a manifest that Open would refuse.
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
// ErrFormat or ErrDamaged, or is a read error.
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
		return nil, fmt.Errorf("%s: %w: the manifest was changed after it was written: its SHA-256 is another",
			s.Path(), ErrDamaged)
	}
	return m, nil
}

// Refuse returns ErrIsArchive for an archive, sound or damaged.
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

// text returns m in its only allowed form, byte for byte.
func (m *Manifest) text() ([]byte, error) { return json.MarshalIndent(m, "", "  ") }

// parse is read for a stored manifest: an error wraps ErrFormat or ErrDamaged.
func parse(text []byte) (*Manifest, error) {
	m, err := read(text)
	if err != nil && !errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, err
}

// read parses a manifest. For another format, nothing else is checked. Text that differs from the
// output of Notes is refused: JSON parsers disagree on duplicate fields and on the case of field
// names.
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
		err = errors.New("it is not written as one is: a field of it stands there twice, is unknown, or is " +
			"spelled otherwise")
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// jsonReason returns the text of an error of encoding/json, limited in length: the text may quote
// the manifest.
func jsonReason(err error) string { return fmt.Sprintf("%.200s", err.Error()) }

const (
	maxText  = 4096    // limit in bytes of a name, path or key in a manifest
	maxCount = 1 << 40 // limit of a count in a manifest, so that sums do not overflow
)

// validate checks a manifest without its records. The error names the place and quotes at most a
// name.
func (m *Manifest) validate() error {
	v := &validation{}
	v.values("manifest", reflect.ValueOf(*m))
	o := m.Origin
	v.require(!strings.HasSuffix(o.Prefix, "/") && IsHash(o.SHA256) && o.Revision >= 1,
		"origin: prefix, sha256 or revision is not one")
	v.clusters(m)
	v.definitions(m)
	v.identities(m.Identities)
	v.leases(m)
	v.total(m)
	return v.err
}

// validation keeps the first error.
type validation struct{ err error }

func (v *validation) require(ok bool, format string, args ...any) {
	if !ok && v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// values checks each part of a value: texts with IsText, sums, and that no list is null.
func (v *validation) values(place string, is reflect.Value) {
	switch is.Kind() {
	case reflect.String:
		v.require(IsText(is.String()), "%s: a name that is no text, or too long", place)
	case reflect.Slice:
		v.require(!is.IsNil(), "%s: a list is null", place)
		for i := range is.Len() {
			v.values(fmt.Sprintf("%s[%d]", place, i), is.Index(i))
		}
	case reflect.Struct:
		if s, ok := is.Interface().(Sum); ok {
			v.require(s.Keys >= 0 && s.Keys <= maxCount && s.Bytes >= 0 && s.Bytes <= maxCount && IsHash(s.SHA256),
				"%s: keys, bytes or sha256 is not one", place)
		}
		for i := range is.NumField() {
			v.values(place+"."+is.Type().Field(i).Name, is.Field(i))
		}
	}
}

func (v *validation) clusters(m *Manifest) {
	last, dirs := "", map[string]bool{}
	for i := range m.Clusters {
		c := &m.Clusters[i]
		place := fmt.Sprintf("cluster %.64q", c.Name)
		v.require(c.Name > last && !strings.Contains(c.Name, "/"), "%s: no name, or not in order", place)
		last = c.Name
		v.resources(place, c, dirs)
	}
	v.require(m.Cluster(m.Name) != nil, "cluster %.64q is not among those that it lists", m.Name)
}

// resources checks the resources and collects their folders: if one folder equalled or contained
// another, the resource of a record would be ambiguous.
func (v *validation) resources(of string, c *Cluster, dirs map[string]bool) {
	parts := Sum{}
	for _, r := range c.Resources {
		place := fmt.Sprintf("%s: %.64q", of, r.Resource)
		v.require(r.Identity == "" || IsHash(r.Identity), "%s: an identity that is none", place)
		v.require(strings.HasPrefix(r.Dir, "/") && strings.HasSuffix(r.Dir, "/"+c.Name+"/") && !dirs[r.Dir] &&
			r.Keys >= 1,
			"%s: folder %.128q is none of this cluster, there twice or empty", place, r.Dir)
		dirs[r.Dir] = true
		parts.Keys += r.Keys
		parts.Bytes += r.Bytes
	}
	v.require(parts.Keys == c.Keys && parts.Bytes == c.Bytes, "%s: %d keys of %d bytes, but its parts have %d of %d",
		of, c.Keys, c.Bytes, parts.Keys, parts.Bytes)
}

func (v *validation) definitions(m *Manifest) {
	last := ""
	for _, d := range m.Definitions {
		v.require(d.UID > last && strings.HasSuffix(d.Key, "/"+d.UID) && IsHash(d.SHA256),
			"definition %.64q: no uid, not in order, or no key or digest of it", d.UID)
		last = d.UID
	}
	for _, d := range m.Missing {
		v.require(d.UID != "", "missing definition %.64q: no uid", d.Resource)
	}
}

func (v *validation) identities(all []Identity) {
	last := ""
	for _, i := range all {
		v.require(IsHash(i.Hash) && i.Hash > last, "identity %.64q: not one, or not in order", i.Hash)
		last = i.Hash
	}
}

func (v *validation) leases(m *Manifest) {
	last := int64(0)
	for _, l := range m.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		v.require(err == nil && id > last && l.ID == strconv.FormatInt(id, 16) && l.TTL >= 0 && l.Keys >= 1,
			"lease %.64q: not one, or not in order", l.ID)
		last = id
	}
	for _, e := range m.Encryption {
		v.require(e.Name != "" && e.Keys >= 1, "encryption: no name, or no keys")
	}
}

// total checks that each record belongs to one cluster or is a definition.
func (v *validation) total(m *Manifest) {
	keys := len(m.Definitions)
	for _, c := range m.Clusters {
		keys += c.Keys
	}
	v.require(keys == m.Total.Keys && keys == m.AsStored.Keys, "total: %d keys, as stored %d, but its parts have %d",
		m.Total.Keys, m.AsStored.Keys, keys)
}

// IsText reports whether s is allowed in a manifest: at most 4096 bytes, all printable.
func IsText(s string) bool {
	return len(s) <= maxText && !strings.ContainsFunc(s,
		func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// IsHash reports whether s is 64 lower-case hexadecimal digits: a SHA-256 or an identity.
func IsHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
