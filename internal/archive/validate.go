package archive

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

const (
	maxText  = 4096    // limit in bytes of a name, path or key in a manifest
	maxCount = 1 << 40 // limit of a count in a manifest, so that sums do not overflow
)

func (m *Manifest) validate() error {
	v := &validation{}
	v.values("manifest", reflect.ValueOf(*m))
	o := m.Origin
	v.require(!strings.HasSuffix(o.Prefix, "/") && IsHash(o.SHA256) && o.Revision >= 1,
		"origin: prefix, sha256 or revision is not one")
	v.clusters(m)
	v.definitions(m)
	v.identities(m.Identities)
	keys := len(m.Definitions) // each other record belongs to one cluster
	for _, c := range m.Clusters {
		keys += c.Keys
	}
	v.counts(&m.Counts, keys)
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

// counts checks the counts of all records; keys is their number.
func (v *validation) counts(c *Counts, keys int) {
	last := int64(0)
	for _, l := range c.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		v.require(err == nil && id > last && l.ID == strconv.FormatInt(id, 16) && l.TTL >= 0 && l.Keys >= 1,
			"lease %.64q: not one, or not in order", l.ID)
		last = id
	}
	for _, e := range c.Encryption {
		v.require(e.Name != "" && e.Keys >= 1, "encryption: no name, or no keys")
	}
	v.require(keys == c.Total.Keys && keys == c.AsStored.Keys, "total: %d keys, as stored %d, but its parts have %d",
		c.Total.Keys, c.AsStored.Keys, keys)
}

// IsText reports whether s is allowed in a manifest: at most 4096 bytes, all printable.
func IsText(s string) bool {
	return len(s) <= maxText && !strings.ContainsFunc(s,
		func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// IsHash reports whether s is 64 lower-case hexadecimal digits: a SHA-256 or an identity.
func IsHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
