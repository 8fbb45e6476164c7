package calico

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Options of a migration. The zero value is the careful choice of each.
type Options struct {
	// KeepV1 keeps the v1 records, CRDs and APIService in the output, with the v1 datastore locked.
	KeepV1 bool
	// Conflicts is what to do where a v3 object of the same name is there and differs.
	Conflicts Conflicts
	// NewUIDs gives v3 records new UIDs, the same at each run, in place of those that clients saw; references follow.
	NewUIDs bool
	// V3CRDs is a manifest (YAML or JSON) of the v3 CRDs, for a snapshot that lacks them; nil for none.
	V3CRDs     []byte
	V3CRDsPath string // of its file, for errors
	// SetAPIGroup sets CALICO_API_GROUP on the components of a manifest install; without it that is a step to do by hand.
	SetAPIGroup bool
}

// Migration is the transform. It may be planned more than once.
type Migration struct{ Options }

// New makes a migration; Plan checks the options.
func New(o Options) *Migration { return &Migration{o} }

// Plan stages the whole migration on v, for each storage prefix. Problems are in the view's report; an error is about
// reading the snapshot or the manifest.
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
	found := false
	for _, prefix := range prefixes {
		r := newRun(m.Options, v, keys.Kubernetes{Prefix: prefix})
		any, err := r.plan(ctx)
		if err != nil {
			return err
		}
		found = found || any
	}
	if !found {
		v.Raise("", codeNothingToMigrate.Because("there is neither a record nor a CRD of %s in the snapshot", groupV1))
	}
	return nil
}

// run is a migration under one storage prefix.
type run struct {
	opts    Options
	view    *transform.View
	keys    keys.Kubernetes
	kinds   []kind
	crds    *crdSet
	table   *table
	natives *natives
	ipam    *ipamCheck

	policies map[string][]*identity // by the tier they name
	late     []lateWrite            // v3 ClusterInformation, to be staged after everything that may refer to it
	left     int                    // v1 records that are not migrated for a problem
}

func newRun(o Options, v *transform.View, k keys.Kubernetes) *run {
	return &run{
		opts: o, view: v, keys: k, kinds: kinds(), table: newTable(),
		natives: &natives{view: v, keys: k}, ipam: newIPAMCheck(), policies: map[string][]*identity{},
	}
}

// plan stages one prefix. found is false where the v1 group left nothing there: then nothing is staged.
func (m *run) plan(ctx context.Context) (found bool, err error) {
	if m.crds, err = loadCRDs(ctx, m.view, m.keys, m.opts.V3CRDs); err != nil {
		if errors.Is(err, errManifest) && m.opts.V3CRDsPath != "" {
			err = fmt.Errorf("%s: %w", m.opts.V3CRDsPath, err)
		}
		return false, err
	}
	if err := m.scan(ctx); err != nil {
		return false, err
	}
	if m.crds.idle() {
		if err := m.reportAggregatedAPIService(ctx); err != nil {
			return false, err
		}
		return m.crds.strange > 0, m.checkValues(ctx)
	}
	return true, inOrder(ctx, m.preflight,
		m.crds.inject, m.warnLocked, m.migrateKinds, m.settleOwners, m.warnTiers, m.remapReferences, m.stageLocks, func(ctx context.Context) error { return m.ipam.report(ctx, m) }, m.summary,
		m.setComponents, m.removeAggregatedAPIService, m.endV1)
}

// inOrder runs steps until one fails.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endV1 deletes the v1 group, or locks its datastore where it is kept.
func (m *run) endV1(ctx context.Context) error {
	left := m.left + m.crds.strange
	if left == 0 && !m.opts.KeepV1 {
		return m.removeV1(ctx)
	}
	if !m.opts.KeepV1 {
		m.view.Report().AddStep("the records of %s are kept, locked, because some were not migrated (%d): migrate or delete those by hand, then delete the CRDs of that group",
			groupV1, left)
	}
	return m.setReady(ctx, m.lockKey(), false, "the v1 datastore is locked")
}

// removeV1 deletes the v1 group: every record of every kind, the CRDs, and the group's APIService. Left in place, the group
// would make restored components go on choosing it (libcalico-go/lib/backend/k8s/discovery.go: v3 only where v1 is absent);
// records without their CRD would come back with it one day. It must not be called where a record was left alone.
func (m *run) removeV1(ctx context.Context) error {
	for entry, err := range m.view.Live(ctx, groupDir(m.keys, groupV1)) {
		if err != nil {
			return err
		}
		if err := m.view.Delete(ctx, entry.Key, "replaced by "+apiVersionV3); err != nil {
			return err
		}
	}
	for _, plural := range m.crds.old {
		key := m.keys.Format(keys.Key{Resource: keys.DefinitionType(), Name: plural + "." + groupV1})
		if _, known := kindOfV1(plural); !known {
			m.view.Raise(string(key), codeUnknownKind.Because("its kind is not in %s, and it has no records: it goes with the other CRDs of %s", apiVersionV3, groupV1).Decided(finding.Noted))
		}
		if err := m.view.Delete(ctx, key, "its group was migrated to "+apiVersionV3); err != nil {
			return err
		}
	}
	return m.view.Delete(ctx, m.apiServiceKey(groupV1, "v1"), "its group is gone")
}
