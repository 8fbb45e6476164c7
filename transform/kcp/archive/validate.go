package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxText is how many bytes a name, a path or a key in a manifest may have.
const maxText = 4096

// validate tells what is wrong with a manifest by itself, whatever the records of its file are. The error names the place and never
// quotes more than a name.
func (m *Manifest) validate() error {
	for _, check := range []func() error{
		m.validateLists, m.validateOrigin, m.validateClusters, m.validateDefinitions, m.validateIdentities, m.validateLeases, m.validateTotal,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateLists: an empty list is [], so that who reads one need not ask.
func (m *Manifest) validateLists() error {
	null := m.Clusters == nil || m.Definitions == nil || m.Missing == nil || m.Identities == nil || m.Leases == nil || m.Encryption == nil
	for _, c := range m.Clusters {
		null = null || c.Resources == nil
	}
	for _, all := range [][]Definition{m.Definitions, m.Missing} {
		for _, d := range all {
			null = null || d.StoredVersions == nil
		}
	}
	for _, i := range m.Identities {
		null = null || i.Resources == nil || i.Exports == nil
	}
	if null {
		return errors.New("a list is null")
	}
	return nil
}

func (m *Manifest) validateOrigin() error {
	o := m.Origin
	if err := allText("origin", o.Shard, o.Prefix); err != nil {
		return err
	}
	if strings.HasSuffix(o.Prefix, "/") || !isHex(o.SHA256) || o.Revision < 1 {
		return errors.New("origin: prefix, sha256 or revision is not one")
	}
	return o.Rest.validate("origin: rest")
}

func (m *Manifest) validateClusters() error {
	last, dirs := "", map[string]bool{}
	for _, c := range m.Clusters {
		place := fmt.Sprintf("cluster %.64q", c.Name)
		if c.Name == "" || c.Name <= last || strings.Contains(c.Name, "/") {
			return fmt.Errorf("%s: no name, or not in order", place)
		}
		last = c.Name
		if err := allText(place, c.Name, c.Path, c.UID, c.Shard, c.Owner.Cluster, c.Owner.Name, c.Owner.UID); err != nil {
			return err
		}
		if err := c.validateResources(place, dirs); err != nil {
			return err
		}
	}
	if m.Cluster(m.Name) == nil {
		return fmt.Errorf("cluster %.64q is not among those that it lists", m.Name)
	}
	return nil
}

// validateResources also gathers the folders: that two resources share one, or that one lies in another, would leave open which of
// them a record is of.
func (c *Cluster) validateResources(place string, dirs map[string]bool) error {
	var all adder
	for _, r := range c.Resources {
		place := fmt.Sprintf("%s: %.64q", place, r.Resource)
		if err := allText(place, r.Resource, r.Dir); err != nil {
			return err
		}
		if r.Identity != "" && !isHex(r.Identity) {
			return fmt.Errorf("%s: an identity that is none", place)
		}
		if !strings.HasPrefix(r.Dir, "/") || !strings.HasSuffix(r.Dir, "/"+c.Name+"/") || dirs[r.Dir] || r.Keys < 1 {
			return fmt.Errorf("%s: folder %.128q is none of this cluster, there twice or empty", place, r.Dir)
		}
		dirs[r.Dir] = true
		if err := all.add(place, r.Sum); err != nil {
			return err
		}
	}
	return all.equal(place, c.Sum)
}

func (m *Manifest) validateDefinitions() error {
	last := ""
	for _, d := range m.Definitions {
		place := fmt.Sprintf("definition %.64q", d.UID)
		if err := d.validate(place); err != nil {
			return err
		}
		if d.UID <= last || !strings.HasSuffix(d.Key, "/"+d.UID) || !isHex(d.SHA256) {
			return fmt.Errorf("%s: not in order, or no key or digest of it", place)
		}
		last = d.UID
	}
	for _, d := range m.Missing {
		if err := d.validate(fmt.Sprintf("missing definition %.64q", d.UID)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definition) validate(place string) error {
	if d.UID == "" {
		return fmt.Errorf("%s: no uid", place)
	}
	return allText(place, append([]string{d.UID, d.Key, d.Resource, d.Schema}, d.StoredVersions...)...)
}

func (m *Manifest) validateIdentities() error {
	last := ""
	for _, i := range m.Identities {
		place := fmt.Sprintf("identity %.64q", i.Hash)
		if !isHex(i.Hash) || i.Hash <= last {
			return fmt.Errorf("%s: not one, or not in order", place)
		}
		last = i.Hash
		texts := append([]string{}, i.Resources...)
		for _, e := range i.Exports {
			texts = append(texts, e.Cluster, e.Path, e.Name)
		}
		if err := allText(place, texts...); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) validateLeases() error {
	last := int64(0)
	for _, l := range m.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		if err != nil || id <= last || l.ID != strconv.FormatInt(id, 16) || l.TTL < 0 || l.Keys < 1 {
			return fmt.Errorf("lease %.64q: not one, or not in order", l.ID)
		}
		last = id
	}
	for _, e := range m.Encryption {
		if err := allText("encryption", e.Name); err != nil {
			return err
		}
		if e.Name == "" || e.Keys < 1 {
			return errors.New("encryption: no name, or no keys")
		}
	}
	return nil
}

// validateTotal: each record is of one cluster or is a definition.
func (m *Manifest) validateTotal() error {
	keys := len(m.Definitions)
	for _, c := range m.Clusters {
		keys += c.Keys // that does not overflow: each is at most maxCount
	}
	if err := m.Total.validate("total"); err != nil {
		return err
	}
	if err := m.AsStored.validate("asStored"); err != nil {
		return err
	}
	if keys != m.Total.Keys || keys != m.AsStored.Keys {
		return fmt.Errorf("total: %d keys, as stored %d, but its parts have %d", m.Total.Keys, m.AsStored.Keys, keys)
	}
	return nil
}

// maxCount bounds what a manifest counts, so that sums of it do not overflow.
const maxCount = 1 << 40

func (s Sum) validate(place string) error {
	if s.Keys < 0 || s.Keys > maxCount || s.Bytes < 0 || s.Bytes > maxCount || !isHex(s.SHA256) {
		return fmt.Errorf("%s: keys, bytes or sha256 is not one", place)
	}
	return nil
}

// adder adds sums up.
type adder struct {
	keys  int
	bytes int64
}

func (a *adder) add(place string, s Sum) error {
	a.keys += s.Keys
	a.bytes += s.Bytes
	return s.validate(place)
}

func (a *adder) equal(place string, s Sum) error {
	if a.keys != s.Keys || a.bytes != s.Bytes {
		return fmt.Errorf("%s: %d keys of %d bytes, but its parts have %d of %d", place, s.Keys, s.Bytes, a.keys, a.bytes)
	}
	return s.validate(place)
}

// isHex tells whether s is 64 lower-case hexadecimal digits.
func isHex(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// allText refuses what a manifest has no room for.
func allText(place string, texts ...string) error {
	for _, t := range texts {
		if !IsText(t) {
			return fmt.Errorf("%s: a name that is no text, or too long", place)
		}
	}
	return nil
}

// IsText tells whether a manifest may say s: it has at most 4096 bytes, and nothing in it that a terminal would take for something else
// than text.
func IsText(s string) bool {
	return len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// IsIdentity tells whether a manifest may say s of an identity: it is 64 lower-case hexadecimal digits.
func IsIdentity(s string) bool { return isHex(s) }
