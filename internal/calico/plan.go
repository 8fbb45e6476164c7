package calico

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/stream"
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
		s := &store{v, ctx, keys.Kubernetes{Prefix: prefix}}
		plan := s.migrate
		if m.Abort {
			plan = s.abort
		}
		some, old, err := plan(m.Options, choices)
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

// store is a view below one storage prefix.
type store struct {
	*transform.View
	ctx  context.Context
	keys keys.Kubernetes
}

func (s *store) key(gr schema.GroupResource, namespace, name string) []byte {
	return s.keys.Format(keys.Key{Resource: gr, Namespace: namespace, Name: name})
}

// each calls do for the entries of a folder.
func (s *store) each(dir []byte, do func(e *transform.Entry) error) error {
	return stream.Each(s.Live(s.ctx, dir), do)
}

// objects calls do for the objects of a resource whose keys an API server makes. Callers report
// other keys in its folder where they matter.
func (s *store) objects(gr schema.GroupResource, do func(key keys.Key, e *transform.Entry) error) error {
	return s.each(s.keys.Dir(gr), func(e *transform.Entry) error {
		if key, err := s.keys.Parse(e.Key); err == nil {
			return do(key, e)
		}
		return nil
	})
}

// get returns the entry of a key, nil for none.
func (s *store) get(key []byte) (*transform.Entry, error) { return s.Get(s.ctx, key) }

// read decodes the object at key; nil for none, and for one that cannot be decoded, which is
// reported elsewhere.
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

// created has what a server gives a new object at key: a UID, the same at each run, and a time.
func (s *store) created(key []byte) (uid string, at time.Time, err error) {
	if at, err = s.Time(s.ctx); err != nil {
		return "", at, err
	}
	digest, err := s.InputDigest(s.ctx)
	return mintUID(digest, key), at, err
}

// migrate stages one prefix. Where found is false there is nothing of the v1 group, and nothing is
// staged.
func (s *store) migrate(o Options, c *choices) (found, v1 bool, err error) {
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

// plan stages the changes of a prefix that has records or CRDs of the v1 group.
func (m *run) plan() error {
	for _, step := range []func() error{
		m.crds.preflight, m.crds.inject, m.warnLocked, m.migrateKinds, m.recheckOwners, m.warnTiers,
		m.remapReferences, m.stageLocks, m.reportIPAM, m.endRecords, m.endComponents, m.removeAggregatedAPIService,
		m.endV1,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (m *run) endComponents() error { return m.setComponents(m.opts.SetAPIGroup) }

// endV1 deletes the v1 group, or locks its datastore where it is kept.
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
