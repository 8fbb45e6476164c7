package calico

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/transform"
)

// migrateKinds is the second pass: it converts and stages the records, by kind and v3 key.
// ClusterInformation is only prepared.
func (m *run) migrateKinds() {
	rest := m.table.records
	for _, kd := range m.crds.kinds {
		n := 0
		var some batch[*draft]
		for ; n < len(rest) && rest[n].kind == kd; n++ {
			if rest[n].fate != pending {
				continue
			}
			d := m.begin(rest[n])
			if m.Err != nil {
				return
			}
			if some.add(d, len(d.stored)) {
				m.migrateBatch(some.take())
			}
		}
		m.migrateBatch(some.take())
		m.checkOthers(kd, rest[:n])
		rest = rest[n:]
		m.crds.accept[kd.Plural], m.crds.versions[kd.Plural] = nil, nil // compiled rules take megabytes
	}
}

// migrateBatch converts records in parallel, and stages them in their order.
func (m *run) migrateBatch(batch []*draft) {
	if m.Err != nil {
		return
	}
	parallel := func(work func(d *draft)) {
		if m.Err == nil {
			m.Failed(m.View.Parallel(m.Ctx, len(batch), func(i int) error {
				work(batch[i])
				return nil
			}))
		}
	}
	parallel(func(d *draft) { d.convertAlone(m.Ctx) })
	for _, d := range batch {
		if d.err == nil && d.value == nil && !d.terminating() && d.id.rest().there == nil {
			d.refs = m.guessOwners(d.id, d.owners)
		}
	}
	parallel(func(d *draft) {
		if d.refs != nil {
			d.guessed = d.convert(m.Ctx)
		}
	})
	for _, d := range batch {
		if m.Err != nil {
			return
		}
		err := m.migrate(d)
		if f := finding.Of(err); f != nil {
			m.skip(d.id, f)
		} else if m.Failed(err) {
			return
		}
	}
}

// draft is a v3 record in the making.
type draft struct {
	id      *identity
	crd     *schema.CRD     // to write it by
	version *schema.Version // v3 of crd
	stored  []byte          // the v1 record
	r       *record
	meta    metav1.ObjectMeta // as clients saw it
	owners  []metav1.OwnerReference
	refs    translations // of the owners, a guess at first
	guessed error        // of the conversion with that guess
	dropped []string     // paths that were pruned
	value   []byte       // to be stored; nil where it depends on other records
	err     error        // why the record is not migrated
	meter   *bounded.Meter
}

// begin begins to migrate one record.
func (m *run) begin(id *identity) *draft {
	d := &draft{id: id, crd: m.crds.accept[id.kind.Plural], version: m.crds.versions[id.kind.Plural], meter: m.View.Budget().Meter()}
	if d.version == nil {
		d.err = codeCRDMissing.Because("there is no v3 CRD of %s to write it by", id.kind.Kind)
		return d
	}
	reason, err := m.View.Exposes(m.Ctx, id.key, id.v3key(m.Keys))
	switch {
	case m.Failed(err):
	case reason != "":
		d.err = transform.CodeWouldBePlaintext.Because("%s", reason)
	default:
		d.stored = m.stored(id)
	}
	return d
}

// convertAlone decodes the record. It converts one that does not depend on others: that has no
// owners, and no v3 object of its name.
func (d *draft) convertAlone(ctx context.Context) {
	if d.err != nil {
		return
	}
	if d.r, d.err = d.id.decode(d.stored); d.err != nil {
		return
	}
	d.meta = d.r.meta.seen()
	d.owners = d.meta.OwnerReferences
	if d.terminating() || len(d.meta.OwnerReferences) > 0 || d.id.rest().there != nil {
		return
	}
	if d.err = d.convert(ctx); d.err == nil && d.value == nil {
		d.value, d.err = encoding.EncodeObject(d.r.obj, d.r.format)
	}
}

// terminating says that the record is being deleted, and that no finalizer holds it.
func (d *draft) terminating() bool {
	return d.meta.DeletionTimestamp != nil && len(d.meta.Finalizers) == 0
}

// convert makes the record what a server would store. The owners are translated by then. Most
// records are that once they are converted, which their bytes tell.
func (d *draft) convert(ctx context.Context) error {
	ctx = bounded.WithMeter(ctx, d.meter)
	if err := d.r.convert(&d.meta, d.id.name(), d.id.written(), d.refs); err != nil {
		return err
	}
	value, err := encoding.EncodeObject(d.r.obj, d.r.format)
	errs := validation.ValidateObjectMeta(&d.meta, d.id.kind.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if err == nil && len(errs) == 0 && d.crd.Accepts(ctx, value, d.id.namespace(), d.id.name()) {
		d.value = value
		return nil
	}
	d.dropped, err = fit(ctx, d.version, d.r, errs)
	return err
}

// migrate stages one record.
func (m *run) migrate(d *draft) (err error) {
	id := d.id
	if err = d.err; err == nil && !d.terminating() && (d.value == nil || d.refs != nil) {
		err = m.convertOwned(d)
	}
	switch {
	case !d.meter.Take():
		return codeInvalid.Because("the schemas and rules of CustomResourceDefinitions cost %s", m.View.Budget())
	case err == nil && d.terminating():
		id.fate = gone
		m.Raise(string(id.key), codeTerminating.Because("it is being deleted and no finalizer holds it: it is not created"))
		return nil
	case err == nil:
		err = m.loses(id, d.dropped)
	}
	if err != nil {
		return err
	}
	if id.rest().there != nil {
		m.meet(id, d.version, d.r.obj)
	} else {
		id.fate = migrated
		m.write(id, d.r.obj, d.r.format, d.value)
	}
	if id.wrote() && len(d.dropped) > 0 {
		m.Raise(string(id.key), codePrunedField.Because("the v3 CRD does not know %s", finding.List(d.dropped)))
	}
	for _, t := range d.refs {
		if id.wrote() {
			m.View.Report().AddReference(string(id.v3key(m.Keys)), t.before, t.after)
		}
	}
	if id.kind.Name == namePolicy && (id.wrote() || id.fate == unchanged) {
		tier := text(objectAt(d.r.obj, "spec"), "tier")
		m.policies[tier] = append(m.policies[tier], id)
	}
	return nil
}

// convertOwned converts a record with owners, or a v3 object of its name, unless it was converted
// with the right owners.
func (m *run) convertOwned(d *draft) error {
	refs, err := m.recordOwners(d.id, d.owners)
	switch {
	case err != nil:
		return err
	case d.refs != nil && slices.Equal(refs, d.refs):
		return d.guessed
	case d.refs != nil: // an owner of the same batch was skipped
		if d.r = m.take(d.id); d.r == nil {
			return m.Err
		}
		d.meta, d.value, d.dropped = d.r.meta.seen(), nil, nil
	}
	d.refs = refs
	return d.convert(m.Ctx)
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

// write stages a v3 record and gives it to the cross-check. value is obj encoded, or nil.
func (m *run) write(id *identity, obj map[string]any, format encoding.Format, value []byte) {
	key := id.v3key(m.Keys)
	m.ipam.add(id.kind.Kind, key, obj)
	if value == nil {
		var err error
		if value, err = encoding.EncodeObject(obj, format); m.Failed(err) {
			return
		}
	}
	switch {
	case id.kind.Kind == kindClusterInformation:
		id.more().late = value
	default:
		m.Put(key, value)
	}
}

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
		if id.kind != kd || id.fate != skipped || id.rest().there != nil || id.rest().twin != nil {
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

// summary adds what became of the records to the report, and forgets the records: no later step
// asks for one. Counts of several storage prefixes add up.
func (m *run) summary() {
	r, all := m.View.Report(), slices.Concat(m.table.lost, m.table.records)
	for _, kd := range m.crds.kinds {
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
		if id.wrote() && id.renamed() {
			r.Renamed = append(r.Renamed, transform.Rename{Kind: id.kind.Kind, Namespace: id.namespace(), From: id.stored(), To: id.name()})
		}
		seen, written := id.seen(), id.written()
		if written == seen {
			written = seen // one string, not two that are the same
		}
		if id.wrote() || id.present() && !strings.EqualFold(written, seen) {
			r.AddUID(transform.UID{
				Kind: id.kind.Kind, Namespace: id.namespace(), Name: id.name(), Stored: id.uid.String(), Seen: seen, Written: written,
			})
		}
	}
	m.table, m.ipam, m.policies = nil, nil, nil
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
	if id.rest().conflict {
		c.Conflicts++
	}
}
