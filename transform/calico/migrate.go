package calico

import (
	"context"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// migrateKinds is the second pass: it converts and stages the records, by kind and v3 key. ClusterInformation is only made
// ready to be staged.
func (m *run) migrateKinds(ctx context.Context) error {
	rest := m.table.records
	for index := range m.kinds {
		n := 0
		for n < len(rest) && rest[n].kind == index {
			n++
		}
		var records []*identity
		records, rest = rest[:n], rest[n:]
		if err := m.migrateAll(ctx, records); err != nil {
			return err
		}
		if err := m.checkOthers(ctx, index, records); err != nil {
			return err
		}
	}
	return nil
}

// migrateAll converts and stages the records of one kind.
func (m *run) migrateAll(ctx context.Context, records []*identity) error {
	for i, id := range records {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if id.fate != pending {
			continue
		}
		err := m.migrate(ctx, id)
		if f := finding.Of(err); f != nil {
			m.leave(id, f)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// migrate converts and stages one record.
func (m *run) migrate(ctx context.Context, id *identity) error {
	version := m.crds.v3(m.kinds[id.kind].Plural)
	if version == nil {
		return codeCRDMissing.Because("there is no v3 CRD of %s to write it by", m.kinds[id.kind].Kind)
	}
	reason, err := m.view.Exposes(ctx, id.key, id.v3key)
	if err != nil {
		return err
	}
	if reason != "" {
		return transform.CodeWouldBePlaintext.Because("%s", reason)
	}
	r, err := m.reread(ctx, id)
	if err != nil {
		return err
	}
	if seen := r.meta.seen(); seen.DeletionTimestamp != nil && len(seen.Finalizers) == 0 {
		id.fate = gone
		m.view.Raise(string(id.key), codeTerminating.Because("it is being deleted and no finalizer holds it: it is not created"))
		return nil
	}
	refs, err := m.recordOwners(ctx, r, id)
	if err != nil {
		return err
	}
	k, format := r.kind, r.format
	obj, meta, err := r.convert(id.name, id.written(), refs)
	if err != nil {
		return err
	}
	dropped, err := fit(ctx, k, version, obj, meta)
	if err != nil {
		return err
	}
	if err := m.loses(ctx, id, dropped); err != nil {
		return err
	}
	if id.there != nil {
		err = m.meet(ctx, id, version, obj)
	} else {
		id.fate = migrated
		m.feedIPAM(id, obj)
		err = m.put(ctx, id, obj, format)
	}
	if err == nil && id.wrote() {
		m.reportWrite(id, dropped, refs)
	}
	if id.wrote() || id.fate == unchanged {
		m.noteTier(id, obj)
	}
	return err
}

// loses refuses a record that would lose what clients of v1 see of it, or what the migration sets, because the v3 CRD does not
// know it. What the v1 CRD does not know either nobody sees: it is dropped, and reported.
func (m *run) loses(ctx context.Context, id *identity, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	v1, err := m.crds.v1(ctx, m.kinds[id.kind])
	if v1 == nil || err != nil {
		return err
	}
	r, err := m.reread(ctx, id)
	if err != nil {
		return err
	}
	junk := v1.Prune(r.obj)
	lost := slices.DeleteFunc(slices.Clone(dropped), func(path string) bool {
		return strings.HasSuffix(path, "=null") || slices.Contains(junk, path)
	})
	if len(lost) > 0 {
		return codeCRDUnfit.Because("the v3 CRD of %s does not know %s, which would be lost; apply the one of the Calico release that runs", m.kinds[id.kind].Kind, finding.List(lost))
	}
	return nil
}

// reportWrite lists what is not in a written record as it was in the v1 record.
func (m *run) reportWrite(id *identity, dropped []string, refs []translation) {
	if len(dropped) > 0 {
		m.view.Raise(string(id.key), codePrunedField.Because("the v3 CRD does not know %s", finding.List(dropped)))
	}
	for _, t := range refs {
		m.view.Report().AddReference(string(id.v3key), t.before, t.after)
	}
}

func (m *run) put(ctx context.Context, id *identity, obj map[string]any, format encoding.Format) error {
	value, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	if m.kinds[id.kind].Kind == kindClusterInformation {
		m.late = append(m.late, lateWrite{id, value})
		return nil
	}
	return m.view.Put(ctx, id.v3key, value, whyRecord(id))
}

func whyRecord(id *identity) string { return "v3 record of " + string(id.key) }

// feedIPAM gives an IPAM record, as it will be, to the cross-check.
func (m *run) feedIPAM(id *identity, obj map[string]any) {
	m.ipam.add(m.kinds[id.kind].Kind, id.v3key, obj)
}

// checkOthers gives the cross-check what it has not seen of a kind once its records were migrated: v3 objects that stay as
// they are, with a v1 record or without, and records that were left alone, which hold their addresses all the same.
func (m *run) checkOthers(ctx context.Context, index int, records []*identity) error {
	k := m.kinds[index]
	if !inIPAMCheck(k.Kind) {
		return nil
	}
	for _, o := range m.table.objectsOf(index) {
		if o.replaced {
			continue
		}
		obj, _, _ := encoding.DecodeObject(o.value) // nil where it fails, which was reported in the first pass
		m.ipam.add(k.Kind, o.key, obj)
	}
	for _, id := range slices.Concat(records, m.table.lost) {
		if id.kind != index || id.fate != left || id.there != nil || id.twin != nil {
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
			_ = convertSpec(k, map[string]any{}, spec) // what does not convert was reported
		}
		m.ipam.add(k.Kind, id.key, obj)
	}
	return nil
}

// summary writes what became of the records into the report.
func (m *run) summary(context.Context) error {
	r := m.view.Report()
	counts := make([]transform.KindCount, len(m.kinds))
	for _, id := range m.table.lost {
		id.count(&counts[id.kind])
	}
	for _, id := range m.table.records {
		id.count(&counts[id.kind])
		m.summarize(id)
	}
	for i, c := range counts {
		if c != (transform.KindCount{}) {
			c.Kind, c.From, c.To = m.kinds[i].Kind, apiVersionV1, apiVersionV3
			r.Kinds = addCount(r.Kinds, c)
		}
	}
	return nil
}

// summarize lists a record's new name and UID.
func (m *run) summarize(id *identity) {
	r, k := m.view.Report(), m.kinds[id.kind]
	if id.wrote() && id.name != id.stored {
		r.Renamed = append(r.Renamed, transform.Rename{Kind: k.Kind, Namespace: id.namespace, From: id.stored, To: id.name})
	}
	if id.wrote() || id.present() && !strings.EqualFold(id.written(), id.seen()) {
		r.UIDs = append(r.UIDs, transform.UID{
			Kind: k.Kind, Namespace: id.namespace, Name: id.name, Stored: id.uid.String(), Seen: id.seen(), Written: id.written(),
		})
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

// addCount adds the counts of a kind to the list: a snapshot may hold several storage prefixes.
func addCount(list []transform.KindCount, c transform.KindCount) []transform.KindCount {
	i := slices.IndexFunc(list, func(other transform.KindCount) bool { return other.Kind == c.Kind })
	if i < 0 {
		return append(list, c)
	}
	list[i].Migrated += c.Migrated
	list[i].Unchanged += c.Unchanged
	list[i].Skipped += c.Skipped
	list[i].Conflicts += c.Conflicts
	return list
}
