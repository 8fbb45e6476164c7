package calico

import (
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// migrateKinds is the second pass: it converts and stages the records, by kind and v3 key.
// ClusterInformation is only prepared.
func (m *run) migrateKinds() {
	rest := m.table.records
	for _, kd := range kinds() {
		n := 0
		for ; n < len(rest) && rest[n].kind == kd; n++ {
			if n%256 == 0 && m.Failed(m.Ctx.Err()) {
				return
			}
			if rest[n].fate != pending {
				continue
			}
			err := m.migrate(rest[n])
			if f := finding.Of(err); f != nil {
				m.skip(rest[n], f)
			} else if m.Failed(err) {
				return
			}
		}
		m.checkOthers(kd, rest[:n])
		rest = rest[n:]
	}
}

// migrate converts and stages one record.
func (m *run) migrate(id *identity) error {
	version := m.crds.versions[id.kind.Plural]
	if version == nil {
		return codeCRDMissing.Because("there is no v3 CRD of %s to write it by", id.kind.Kind)
	}
	reason, err := m.View.Exposes(m.Ctx, id.key, id.v3key)
	if err != nil {
		return err
	}
	if reason != "" {
		return transform.CodeWouldBePlaintext.Because("%s", reason)
	}
	r := m.take(id)
	if r == nil {
		return m.Err
	}
	meta := r.meta.seen()
	if meta.DeletionTimestamp != nil && len(meta.Finalizers) == 0 {
		id.fate = gone
		m.Raise(string(id.key), codeTerminating.Because("it is being deleted and no finalizer holds it: it is not created"))
		return nil
	}
	refs, err := m.recordOwners(id, meta.OwnerReferences)
	if err != nil {
		return err
	}
	if err := r.convert(&meta, id.name, id.written(), refs); err != nil {
		return err
	}
	dropped, err := fit(m.Ctx, version, r, meta)
	if err != nil {
		return err
	}
	if err := m.loses(id, dropped); err != nil {
		return err
	}
	if id.there != nil {
		m.meet(id, version, r.obj)
	} else {
		id.fate = migrated
		m.write(id, r.obj, r.format)
	}
	if id.wrote() && len(dropped) > 0 {
		m.Raise(string(id.key), codePrunedField.Because("the v3 CRD does not know %s", finding.List(dropped)))
	}
	for _, t := range refs {
		if id.wrote() {
			m.View.Report().AddReference(string(id.v3key), t.before, t.after)
		}
	}
	if id.kind.Name == namePolicy && (id.wrote() || id.fate == unchanged) {
		tier := text(objectAt(r.obj, "spec"), "tier")
		m.policies[tier] = append(m.policies[tier], id)
	}
	return nil
}

// loses refuses a record that would lose fields which clients of v1 see, or which the migration
// sets. A field that the v1 CRD does not know either is dropped, and reported.
func (m *run) loses(id *identity, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	v1 := m.crds.v1(id.kind)
	if v1 == nil {
		return m.Err
	}
	r := m.take(id) // decoded anew: the one before was converted
	if r == nil {
		return m.Err
	}
	junk := v1.Prune(r.obj)
	lost := slices.DeleteFunc(slices.Clone(dropped), func(path string) bool {
		return strings.HasSuffix(path, "=null") || slices.Contains(junk, path)
	})
	if len(lost) > 0 {
		return codeCRDUnfit.Because("the v3 CRD of %s does not know %s, which would be lost; apply the one of the Calico release that runs",
			id.kind.Kind, finding.List(lost))
	}
	return nil
}

// write stages a v3 record and gives it to the cross-check.
func (m *run) write(id *identity, obj map[string]any, format encoding.Format) {
	m.ipam.add(id.kind.Kind, id.v3key, obj)
	value, err := encoding.EncodeObject(obj, format)
	switch {
	case m.Failed(err):
	case id.kind.Kind == kindClusterInformation:
		id.late = value
	default:
		m.Put(id.v3key, value, whyRecord(id))
	}
}

func whyRecord(id *identity) string { return "v3 record of " + string(id.key) }

// checkOthers gives the cross-check the rest of a kind after its records: v3 objects that stay as
// they are, and skipped records, which hold their addresses too.
func (m *run) checkOthers(kd *kind, records []*identity) {
	if !inIPAMCheck(kd.Kind) {
		return
	}
	for _, o := range m.table.objectsOf(kd) {
		if !o.replaced {
			obj, _, _ := encoding.DecodeObject(o.value) // nil where it fails, which was reported in the first pass
			m.ipam.add(kd.Kind, o.key, obj)
		}
	}
	for _, id := range slices.Concat(records, m.table.lost) {
		if id.kind != kd || id.fate != skipped || id.there != nil || id.twin != nil {
			continue
		}
		obj, _ := m.Read(id.key) // nil where it cannot be decoded, which was reported
		if obj != nil {
			if spec, err := specOf(obj); err == nil {
				_ = convertSpec(kd, map[string]any{}, spec) // an error was reported
			}
		}
		m.ipam.add(kd.Kind, id.key, obj)
	}
}

// summary adds what became of the records to the report. Counts of several storage prefixes add up.
func (m *run) summary() {
	r, all := m.View.Report(), slices.Concat(m.table.lost, m.table.records)
	for _, kd := range kinds() {
		i := slices.IndexFunc(r.Kinds, func(c transform.KindCount) bool { return c.Kind == kd.Kind })
		c := transform.KindCount{Kind: kd.Kind, From: apiVersionV1, To: apiVersionV3}
		if i >= 0 {
			c = r.Kinds[i]
		}
		before := c
		for _, id := range all {
			if id.kind == kd {
				id.count(&c)
			}
		}
		switch {
		case i >= 0:
			r.Kinds[i] = c
		case c != before:
			r.Kinds = append(r.Kinds, c)
		}
	}
	for _, id := range m.table.records {
		if id.wrote() && id.name != id.stored {
			r.Renamed = append(r.Renamed, transform.Rename{Kind: id.kind.Kind, Namespace: id.namespace, From: id.stored, To: id.name})
		}
		if id.wrote() || id.present() && !strings.EqualFold(id.written(), id.seen()) {
			r.UIDs = append(r.UIDs, transform.UID{
				Kind: id.kind.Kind, Namespace: id.namespace, Name: id.name, Stored: id.uid.String(), Seen: id.seen(), Written: id.written(),
			})
		}
	}
}

// count adds a record to the counts of its kind.
func (id *identity) count(c *transform.KindCount) {
	switch id.fate {
	case migrated, replaced:
		c.Migrated++
	case unchanged:
		c.Unchanged++
	default:
		c.Skipped++
	}
	if id.conflict {
		c.Conflicts++
	}
}
