package calico

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Options of a migration. The zero value of each is careful.
type Options struct {
	KeepV1      bool      // keeps the v1 records, CRDs and APIService, with the v1 datastore locked
	Conflicts   Conflicts // which object wins where another v3 object has the name
	Decisions   Decisions // the same by object, before Conflicts
	NewUIDs     bool      // gives v3 records new UIDs, the same at each run; references follow
	V3CRDs      []byte    // manifest (YAML or JSON) of the v3 CRDs, for a snapshot that lacks them; nil for none
	V3CRDsPath  string    // of its file, for errors
	SetAPIGroup bool      // sets CALICO_API_GROUP on the components of a manifest install; else that is a step by hand
	Abort       bool      // takes a live migration back instead
}

// Migration is the transform. It may be planned more than once.
type Migration struct{ Options }

// New makes a migration; Plan checks the options.
func New(o Options) *Migration { return &Migration{o} }

// Plan stages the whole migration on v, for each storage prefix. An error is about reading the
// snapshot or the manifest.
func (m *Migration) Plan(ctx context.Context, v *transform.View) error {
	switch m.Conflicts {
	case RefuseConflicts, KeepV3, TakeV1:
	default:
		return fmt.Errorf("conflicts %q: must be %s or %s", m.Conflicts, KeepV3, TakeV1)
	}
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	found, v1, choices := false, false, newChoices(m.Decisions)
	for _, prefix := range prefixes {
		r := newRun(ctx, m.Options, v, keys.Kubernetes{Prefix: prefix})
		r.choices = choices
		step := r.plan
		if m.Abort {
			step = r.abort
		}
		found = step() || found
		if r.Err != nil {
			return r.Err
		}
		v1 = v1 || len(r.crds.old) > 0
	}
	if err := choices.unknown(); err != nil {
		return err
	}
	switch {
	case found:
	case m.Abort && !v1:
		v.Raise("", codeAbortImpossible.Because("the snapshot has neither DatastoreMigration %s nor a CRD of %s: the clean-up has deleted "+
			"the v1 data, or there was none", migrationName, groupV1))
	case m.Abort:
		v.Raise("", codeAbortImpossible.Because("there is no DatastoreMigration %s in the snapshot", migrationName))
	default:
		v.Raise("", codeNothingToMigrate.Because("there is neither a record nor a CRD of %s in the snapshot", groupV1))
	}
	return nil
}

// run is a migration under one storage prefix.
type run struct {
	*transform.Store
	opts  Options
	crds  *crdSet
	table *table
	ipam  *ipamCheck

	choices  *choices                    // of conflicts, for all prefixes
	customs  map[schema.GroupKind]folder // kinds of the snapshot's CRDs; nil until they are asked for
	policies map[string][]*identity      // by the tier they name
	others   *transform.Early            // entries for eachOther
	skipped  int                         // v1 records that are not migrated for a problem
}

func newRun(ctx context.Context, o Options, v *transform.View, k keys.Kubernetes) *run {
	s := &transform.Store{Ctx: ctx, View: v, Keys: k}
	return &run{
		Store: s, opts: o, crds: &crdSet{Store: s, kinds: kinds()}, table: newTable(), ipam: newIPAMCheck(), choices: newChoices(o.Decisions),
		policies: map[string][]*identity{},
	}
}

// plan stages one prefix. Where found is false there is nothing of the v1 group, and nothing is
// staged.
func (m *run) plan() (found bool) {
	m.others = m.beginOthers()
	m.crds = loadCRDs(m.Store, m.opts.V3CRDs)
	if errors.Is(m.Err, ErrManifest) && m.opts.V3CRDsPath != "" {
		m.Err = fmt.Errorf("%s: %w", m.opts.V3CRDsPath, m.Err)
	}
	if m.Err != nil {
		return false
	}
	m.scan()
	if m.crds.idle() {
		m.reportAggregatedAPIService()
		m.eachOther(func(*transform.Entry) bool { return false }, nil) // refuses values that no API server can read
		return m.crds.strange > 0
	}
	for _, step := range []func(){
		m.preflight, m.crds.inject, m.warnLocked, m.migrateKinds, m.recheckOwners, m.warnTiers, m.remapReferences, m.stageLocks,
		m.reportIPAM, m.idleChoices, m.summary, m.setComponents, m.removeAggregatedAPIService, m.endV1,
	} {
		if m.Err == nil {
			step()
		}
	}
	return true
}

// endV1 deletes the v1 group, or locks its datastore where it is kept.
func (m *run) endV1() {
	left := m.skipped + m.crds.strange
	if left == 0 && !m.opts.KeepV1 {
		m.removeV1()
		return
	}
	if !m.opts.KeepV1 {
		m.Step("the records of %s are kept, locked, because some were not migrated (%d): "+
			"migrate or delete those by hand, then delete the CRDs of that group", groupV1, left)
	}
	m.setReady(m.lockKey(), false)
}

// removeV1 deletes the v1 group: all its records and CRDs, and its APIService. Restored components
// would go on choosing a group that is there (libcalico-go/lib/backend/k8s/discovery.go: v3 only
// where v1 is absent), and records without their CRD would come back with it. It must not be called
// after a record was skipped.
func (m *run) removeV1() {
	for entry := range m.Live(groupDir(m.Keys, groupV1)) {
		m.Delete(entry.Key)
	}
	for _, plural := range m.crds.old {
		key := m.crds.key(plural, groupV1)
		if _, known := m.crds.kinds.ofV1(plural); !known {
			m.Raise(string(key), codeUnknownKind.Because("its kind is not in %s, and it has no records: it goes with the other CRDs of %s",
				apiVersionV3, groupV1).Decided(finding.Noted))
		}
		m.Delete(key)
	}
	m.Delete(m.apiServiceKey(groupV1, "v1"))
}
