package calico

import (
	"context"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// migrateKinds is the second pass: it converts and stages the records, by kind and v3 key.
// ClusterInformation is only prepared.
func (m *run) migrateKinds(ctx context.Context) error {
	rest := m.table.records
	for _, kd := range kinds() {
		n := 0
		for ; n < len(rest) && rest[n].kind == kd; n++ {
			if n%256 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if rest[n].fate != pending {
				continue
			}
			err := m.migrate(ctx, rest[n])
			if f := finding.Of(err); f != nil {
				m.skip(rest[n], f)
			} else if err != nil {
				return err
			}
		}
		if err := m.checkOthers(ctx, kd, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// migrate converts and stages one record.
func (m *run) migrate(ctx context.Context, id *identity) error {
	version := m.crds.versions[id.kind.Plural]
	if version == nil {
		return codeCRDMissing.Because("there is no v3 CRD of %s to write it by", id.kind.Kind)
	}
	reason, err := m.view.Exposes(ctx, id.key, id.v3key)
	if err != nil {
		return err
	}
	if reason != "" {
		return transform.CodeWouldBePlaintext.Because("%s", reason)
	}
	r, err := m.take(ctx, id)
	if err != nil {
		return err
	}
	meta := r.meta.seen()
	if meta.DeletionTimestamp != nil && len(meta.Finalizers) == 0 {
		id.fate = gone
		m.view.Raise(string(id.key), codeTerminating.Because("it is being deleted and no finalizer holds it: it is not created"))
		return nil
	}
	refs, err := m.recordOwners(ctx, id, meta.OwnerReferences)
	if err != nil {
		return err
	}
	if err := r.convert(&meta, id.name, id.written(), refs); err != nil {
		return err
	}
	dropped, err := fit(ctx, version, r, meta)
	if err != nil {
		return err
	}
	if err := m.loses(ctx, id, dropped); err != nil {
		return err
	}
	if id.there != nil {
		err = m.meet(ctx, id, version, r.obj)
	} else {
		id.fate = migrated
		err = m.put(ctx, id, r.obj, r.format)
	}
	if err == nil && id.wrote() {
		m.reportWrite(id, dropped, refs)
	}
	if id.wrote() || id.fate == unchanged {
		m.noteTier(id, r.obj)
	}
	return err
}

// loses refuses a record that would lose fields which clients of v1 see, or which the migration
// sets. A field that the v1 CRD does not know either is dropped, and reported.
func (m *run) loses(ctx context.Context, id *identity, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	v1, err := m.crds.v1(ctx, id.kind)
	if v1 == nil || err != nil {
		return err
	}
	r, err := m.take(ctx, id) // decoded anew: the one before was converted
	if err != nil {
		return err
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

// reportWrite lists the fields and owner references that a written record has otherwise.
func (m *run) reportWrite(id *identity, dropped []string, refs []translation) {
	if len(dropped) > 0 {
		m.view.Raise(string(id.key), codePrunedField.Because("the v3 CRD does not know %s", finding.List(dropped)))
	}
	for _, t := range refs {
		m.view.Report().AddReference(string(id.v3key), t.before, t.after)
	}
}

// put stages a v3 record and gives it to the cross-check.
func (m *run) put(ctx context.Context, id *identity, obj map[string]any, format encoding.Format) error {
	m.ipam.add(id.kind.Kind, id.v3key, obj)
	value, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	if id.kind.Kind == kindClusterInformation {
		m.late = append(m.late, lateWrite{id, value})
		return nil
	}
	return m.view.Put(ctx, id.v3key, value, whyRecord(id))
}

func whyRecord(id *identity) string { return "v3 record of " + string(id.key) }

// checkOthers gives the cross-check the rest of a kind after its records: v3 objects that stay as
// they are, and skipped records, which hold their addresses too.
func (m *run) checkOthers(ctx context.Context, kd *kind, records []*identity) error {
	if !inIPAMCheck(kd.Kind) {
		return nil
	}
	for _, o := range m.table.objectsOf(kd) {
		if o.replaced {
			continue
		}
		obj, _, _ := encoding.DecodeObject(o.value) // nil where it fails, which was reported in the first pass
		m.ipam.add(kd.Kind, o.key, obj)
	}
	for _, id := range slices.Concat(records, m.table.lost) {
		if id.kind != kd || id.fate != skipped || id.there != nil || id.twin != nil {
			continue
		}
		entry, err := m.view.Get(ctx, id.key)
		if err != nil || entry == nil {
			return err
		}
		obj, _, err := encoding.DecodeObject(entry.Value)
		if err != nil {
			obj = nil // reported
		} else if spec, err := specOf(obj); err == nil {
			_ = convertSpec(kd, map[string]any{}, spec) // an error was reported
		}
		m.ipam.add(kd.Kind, id.key, obj)
	}
	return nil
}

// summary adds what became of the records to the report. Counts of several storage prefixes add up.
func (m *run) summary(context.Context) error {
	r, all := m.view.Report(), slices.Concat(m.table.lost, m.table.records)
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
	return nil
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
