package calico

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Options are the options of a migration. The zero value of each option is the safe choice.
type Options struct {
	KeepV1      bool      // keep the v1 records, CRDs and APIService, with the v1 datastore locked
	Conflicts   Conflicts // the winning object if another v3 object has the name
	Decisions   Decisions // the same for single objects; takes precedence over Conflicts
	NewUIDs     bool      // give v3 records new, reproducible UIDs; references follow
	V3CRDs      []byte    // manifest (YAML or JSON) with v3 CRDs missing in the snapshot; nil for none
	V3CRDsPath  string    // path of the manifest, for errors
	SetAPIGroup bool      // set CALICO_API_GROUP on the components of a manifest install; otherwise a step by hand
	Abort       bool      // take back a live migration instead
}

// Migration is the transform. A Migration may be planned more than once.
type Migration struct{ Options }

// New returns a migration with the given options; Plan checks the options.
func New(o Options) *Migration { return &Migration{o} }

// Plan stages the whole migration on v, for each storage prefix. An error concerns reading the
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
		s := &store{v, ctx, keys.Kubernetes{Prefix: prefix}}
		plan := planMigration
		if m.Abort {
			plan = planAbort
		}
		some, old, err := plan(s, m.Options, choices)
		if err != nil {
			return err
		}
		found, v1 = found || some, v1 || old
	}
	if err := choices.unknown(); err != nil {
		return err
	}
	switch {
	case found:
	case m.Abort && !v1:
		v.Raise("", codeAbortImpossible.Because("the snapshot has neither DatastoreMigration %s nor a CRD of %s: the "+
			"clean-up has deleted "+
			"the v1 data, or there was none", migrationName, groupV1))
	case m.Abort:
		v.Raise("", codeAbortImpossible.Because("there is no DatastoreMigration %s in the snapshot", migrationName))
	default:
		v.Raise("", codeNothingToMigrate.Because("there is neither a record nor a CRD of %s in the snapshot", groupV1))
	}
	return nil
}

// store is a view of one storage prefix.
type store struct {
	*transform.View
	ctx  context.Context
	keys keys.Kubernetes
}

func (s *store) key(gr schema.GroupResource, namespace, name string) []byte {
	return s.keys.Format(keys.Key{Resource: gr, Namespace: namespace, Name: name})
}

// each calls do for each entry of a folder.
func (s *store) each(dir []byte, do func(e *transform.Entry) error) error {
	return stream.Each(s.Live(s.ctx, dir), do)
}

// objects calls do for each object of a resource with a valid key. Callers that care about invalid
// keys report them.
func (s *store) objects(gr schema.GroupResource, do func(key keys.Key, e *transform.Entry) error) error {
	return s.each(s.keys.Dir(gr), func(e *transform.Entry) error {
		if key, err := s.keys.Parse(e.Key); err == nil {
			return do(key, e)
		}
		return nil
	})
}

// get returns the entry of a key, nil if absent.
func (s *store) get(key []byte) (*transform.Entry, error) { return s.Get(s.ctx, key) }

// read decodes the object at key. The result is nil for an absent object and for an undecodable
// one, which is reported elsewhere.
func (s *store) read(key []byte) (map[string]any, encoding.Format, error) {
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return nil, encoding.FormatUnknown, err
	}
	obj, format, bad := encoding.DecodeObject(entry.Value)
	if bad != nil {
		return nil, encoding.FormatUnknown, nil
	}
	return obj, format, nil
}

func (s *store) put(key, value []byte) error { return s.Put(s.ctx, key, value) }

func (s *store) step(format string, args ...any) { s.Report().AddStep(format, args...) }

// created returns the UID (equal in every run) and the creation time of a new object at key.
func (s *store) created(key []byte) (uid string, at time.Time, err error) {
	if at, err = s.Time(s.ctx); err != nil {
		return "", at, err
	}
	digest, err := s.InputDigest(s.ctx)
	return objects.MintUID(digest, key), at, err
}

// planMigration plans one prefix. Where found is false there is nothing of the v1 group, and
// nothing is staged.
func planMigration(s *store, o Options, c *choices) (found, v1 bool, err error) {
	crds, err := loadCRDs(s, o.V3CRDs)
	if errors.Is(err, ErrManifest) && o.V3CRDsPath != "" {
		err = fmt.Errorf("%s: %w", o.V3CRDsPath, err)
	}
	if err != nil {
		return false, false, err
	}
	m := newRun(s, o, crds, c)
	v1 = len(crds.old) > 0
	if err := m.scan(); err != nil {
		return false, v1, err
	}
	if crds.idle() {
		if err := s.reportAggregatedAPIService(len(crds.accept) > 0); err != nil {
			return false, v1, err
		}
		// refuses values that no API server can read
		return crds.strange > 0, v1, s.eachReferrer(nil, func(*transform.Entry, string) error { return nil })
	}
	return true, v1, m.plan()
}

// plan stages the changes of a prefix with records or CRDs of the v1 group.
func (m *run) plan() error {
	for _, step := range []func() error{
		m.crds.preflight, m.crds.inject, m.warnLocked, m.migrateKinds, m.recheckOwners, m.warnTiers,
		m.remapReferences, m.stageLocks, func() error { return m.ipam.report(m.store) }, m.endRecords,
		m.endComponents, m.removeAggregatedAPIService, m.endV1,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// endComponents has Calico's workloads use v3 records. They are read anew: references in them may
// have changed.
func (m *run) endComponents() error {
	found, err := findInstallation(m.store)
	if err != nil {
		return err
	}
	return found.setComponents(m.opts.SetAPIGroup)
}

// endV1 deletes the v1 group, or locks its datastore if the group is kept.
func (m *run) endV1() error {
	left := m.skipped + m.crds.strange
	if left == 0 && !m.opts.KeepV1 {
		return m.crds.removeV1()
	}
	if !m.opts.KeepV1 {
		m.step("the records of %s are kept, locked, because some were not migrated (%d): "+
			"migrate or delete those by hand, then delete the CRDs of that group", groupV1, left)
	}
	return m.setReady(m.lockKey(), false)
}
