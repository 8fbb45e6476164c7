package calico

import (
	"context"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// run is the migration of the records under one storage prefix.
type run struct {
	*owners
	opts     Options
	crds     *crdSet
	ipam     *ipamCheck
	choices  *choices               // decisions about conflicts, shared by all prefixes
	policies map[string][]*identity // by tier name
	late     map[*identity][]byte   // v3 ClusterInformation, staged after objects that may refer to it
	skipped  int                    // v1 records not migrated because of a problem
}

func newRun(s *store, o Options, crds *crdSet, c *choices) *run {
	return &run{
		owners: &owners{store: s, kinds: crds.kinds, table: newTable(), relies: map[*identity][]*identity{}},
		opts:   o, crds: crds, ipam: newIPAMCheck(), choices: c,
		policies: map[string][]*identity{}, late: map[*identity][]byte{},
	}
}

// migrateKinds is the second pass: it converts and stages the records, by kind and v3 key.
// ClusterInformation is converted, but staged later.
func (m *run) migrateKinds() error {
	rest := m.table.records
	for _, kd := range m.crds.kinds {
		n := slices.IndexFunc(rest, func(id *identity) bool { return id.kind != kd })
		if n < 0 {
			n = len(rest)
		}
		err := stream.Each(m.drafts(rest[:n]), func(d **draft) error {
			err := m.migrateRecord(*d)
			if f := finding.Of(err); f != nil {
				m.skip((*d).id, f)
				return nil
			}
			return err
		})
		if err == nil {
			err = m.checkOthers(kd, rest[:n])
		}
		if err != nil {
			return err
		}
		rest = rest[n:]
		m.crds.accept[kd.Plural] = nil // compiled rules take megabytes
	}
	return nil
}

// draft is a v3 record during its conversion.
type draft struct {
	id       *identity
	crd      *schema.CRD // the v3 CRD; nil for none
	stored   []byte      // the v1 record
	r        *record
	meta     metav1.ObjectMeta // as seen by clients
	owners   []metav1.OwnerReference
	refs     []translation // translations of the owners
	verdicts []verdict     // incomplete checks of the owners
	unfit    error         // why no server would store the converted record
	dropped  []string      // pruned paths
	value    []byte        // the converted record, encoded
	err      error         // why the record cannot be converted
	meter    *bounded.Meter
}

// drafts yields the pending records, converted in parallel.
func (m *run) drafts(records []*identity) iter.Seq2[**draft, error] {
	var next *draft
	entries := stream.Of(func(yield func(*transform.Entry) error) error {
		for _, id := range records {
			if id.fate != pending {
				continue
			}
			entry, err := m.stored(id)
			if err == nil {
				next, err = m.begin(id, entry.Value)
			}
			if err == nil {
				err = yield(entry)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return transform.Ahead(m.View, entries, func(*transform.Entry) *draft { return next },
		func(d **draft) { (*d).make(m.ctx, m.owners) })
}

// begin creates the draft of one record.
func (m *run) begin(id *identity, stored []byte) (*draft, error) {
	d := &draft{id: id, crd: m.crds.accept[id.kind.Plural], stored: stored, meter: m.Budget().Meter()}
	if d.crd == nil {
		d.err = codeCRDMissing.Because("there is no v3 CRD of %s to write it by", id.kind.Kind)
		return d, nil
	}
	reason, err := m.Exposes(m.ctx, id.key, id.v3key(m.keys))
	if reason != "" {
		d.err = transform.CodeWouldBePlaintext.Because("%s", reason)
	}
	return d, err
}

// make decodes and converts the record.
func (d *draft) make(ctx context.Context, owners *owners) {
	if d.err == nil {
		d.r, d.err = d.id.decode(d.stored)
	}
	if d.err != nil {
		return
	}
	d.meta = d.r.meta.seen()
	if d.owners = d.meta.OwnerReferences; d.terminating() {
		return
	}
	if d.refs, d.verdicts, d.err = owners.translateAll(d.owners); d.err == nil {
		d.unfit = d.convert(ctx)
	}
}

// terminating reports whether the record is being deleted without a finalizer to hold it.
func (d *draft) terminating() bool {
	return d.meta.DeletionTimestamp != nil && len(d.meta.Finalizers) == 0
}

// convert makes the record the bytes a server would store. Most converted records need no further
// change; Accepts finds this out from the bytes.
func (d *draft) convert(ctx context.Context) error {
	ctx = bounded.WithMeter(ctx, d.meter)
	err := d.r.convert(&d.meta, d.id.name(), d.id.written(), d.refs)
	if err != nil {
		return err
	}
	d.value, err = encoding.EncodeObject(d.r.obj, d.r.format)
	errs := validation.ValidateObjectMeta(&d.meta, d.id.kind.Namespaced, validation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	if err == nil && len(errs) == 0 && d.crd.Accepts(ctx, d.value, d.id.namespace(), d.id.name()) {
		return nil
	}
	version, err := d.crd.Version("v3")
	if err != nil {
		return err
	}
	if d.dropped, err = fit(ctx, version, d.r, errs); err == nil {
		d.value, err = encoding.EncodeObject(d.r.obj, d.r.format)
	}
	return err
}

// migrateRecord stages one record.
func (m *run) migrateRecord(d *draft) error {
	id, err := d.id, d.err
	if err == nil {
		err = m.ofRecord(id, d.owners, d.verdicts)
	}
	if err == nil {
		err = d.unfit
	}
	switch {
	case !d.meter.Take():
		return codeInvalid.Because("the schemas and rules of CustomResourceDefinitions cost %s", m.Budget())
	case err == nil && d.terminating():
		id.fate = gone
		m.Raise(string(id.key), codeTerminating.Because("it is being deleted and no finalizer holds it: it is "+
			"not created"))
		return nil
	case err == nil:
		err = m.checkLosses(id, d.dropped)
	}
	if err == nil && id.optional().there != nil {
		err = m.resolveExisting(d)
	} else if err == nil {
		id.fate = migrated
		err = m.write(id, d.r.obj, d.value)
	}
	if err != nil {
		return err
	}
	if id.wrote() {
		if len(d.dropped) > 0 {
			m.Raise(string(id.key), codePrunedField.Because("the v3 CRD does not know %s", finding.List(d.dropped)))
		}
		for _, t := range d.refs {
			m.Report().AddReference(string(id.v3key(m.keys)), t.before, t.after)
		}
	}
	if id.kind.Name == namePolicy && (id.wrote() || id.fate == unchanged) {
		tier := text(objectAt(d.r.obj, "spec"), "tier")
		m.policies[tier] = append(m.policies[tier], id)
	}
	return nil
}

// checkLosses refuses a record if the v3 CRD drops a field that the v1 CRD knows or the migration
// sets. Other dropped fields are only reported.
func (m *run) checkLosses(id *identity, dropped []string) error {
	if len(dropped) == 0 {
		return nil
	}
	v1, err := m.crds.v1(id.kind)
	if v1 == nil || err != nil {
		return err
	}
	r, err := m.decodeStored(id) // decoded again: convert changed the first copy
	if err != nil {
		return err
	}
	junk := v1.Prune(r.obj)
	lost := slices.DeleteFunc(slices.Clone(dropped), func(path string) bool {
		return strings.HasSuffix(path, "=null") || slices.Contains(junk, path)
	})
	if len(lost) > 0 {
		return codeCRDUnfit.Because("the v3 CRD of %s does not know %s, which would be lost; apply the one of the "+
			"Calico release that runs",
			id.kind.Kind, finding.List(lost))
	}
	return nil
}

// write stages a v3 record and adds it to the cross-check.
func (m *run) write(id *identity, obj map[string]any, value []byte) error {
	key := id.v3key(m.keys)
	m.ipam.add(id.kind.Kind, key, obj)
	if id.kind.Kind == kindClusterInformation {
		m.late[id] = value
		return nil
	}
	return m.put(key, value)
}

// skip reports a record that is not migrated. All v1 records then stay.
func (m *run) skip(id *identity, f *finding.Finding) {
	m.skipped++
	id.fate = skipped
	m.Raise(string(id.key), f)
}

// checkOthers adds the other objects of a kind to the cross-check: unchanged v3 objects, and
// skipped records, which still hold their addresses.
func (m *run) checkOthers(kd *kind, records []*identity) error {
	if !inIPAMCheck(kd.Kind) {
		return nil
	}
	for _, o := range m.table.objectsOf(kd) {
		if !o.replaced {
			obj, _, _ := encoding.DecodeObject(o.value) // nil if undecodable, as reported in the first pass
			m.ipam.add(kd.Kind, o.key, obj)
		}
	}
	for _, id := range slices.Concat(records, m.table.lost) {
		if id.kind != kd || id.fate != skipped || id.optional().there != nil || id.optional().twin != nil {
			continue
		}
		obj, _, err := m.read(id.key) // nil if undecodable, as already reported
		if err != nil {
			return err
		}
		if obj != nil {
			if spec, err := specOf(obj); err == nil {
				_ = convertSpec(kd, map[string]any{}, spec) // an error was already reported
			}
		}
		m.ipam.add(kd.Kind, id.key, obj)
	}
	return nil
}

// endRecords warns of unused decisions and adds the outcome of the records to the report. The
// records are released: no later step needs them.
func (m *run) endRecords() error {
	all := slices.Concat(m.table.lost, m.table.records)
	m.choices.warnIdle(m.View, all)
	for _, kd := range m.crds.kinds {
		c := transform.KindCount{Kind: kd.Kind, From: apiVersionV1, To: apiVersionV3}
		for _, id := range all {
			if id.kind != kd {
				continue
			}
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
		if c.Migrated+c.Unchanged+c.Skipped > 0 {
			count(m.Report(), c)
		}
	}
	for _, id := range m.table.records {
		m.listRecord(id)
	}
	m.table, m.ipam, m.policies = nil, nil, nil
	return nil
}

// listRecord adds the new name and the UID of a record to the report.
func (m *run) listRecord(id *identity) {
	r := m.Report()
	if id.wrote() && id.renamed() {
		r.Renamed = append(r.Renamed, transform.Rename{Kind: id.kind.Kind, Namespace: id.namespace(),
			From: id.stored(), To: id.name()})
	}
	seen, written := id.seen(), id.written()
	if written == seen {
		written = seen // share one string instead of keeping two equal ones
	}
	if id.wrote() || id.present() && !strings.EqualFold(written, seen) {
		r.AddUID(transform.UID{
			Kind: id.kind.Kind, Namespace: id.namespace(), Name: id.name(), Stored: id.uid.String(), Seen: seen,
			Written: written,
		})
	}
}

// count adds to the counts of a kind; the counts of several storage prefixes add up.
func count(r *transform.Report, c transform.KindCount) {
	i := slices.IndexFunc(r.Kinds, func(other transform.KindCount) bool { return other.Kind == c.Kind })
	if i < 0 {
		r.Kinds = append(r.Kinds, c)
		return
	}
	to := &r.Kinds[i]
	to.Migrated += c.Migrated
	to.Unchanged += c.Unchanged
	to.Skipped += c.Skipped
	to.Conflicts += c.Conflicts
}
