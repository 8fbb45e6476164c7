package storageversion

import (
	"context"
	"errors"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// ErrNotThere is returned for an option with a CustomResourceDefinition or a group that is not in
// the snapshot.
var ErrNotThere = finding.WithHint(errors.New("not in the snapshot"),
	"\"etcdshift status\" lists what the snapshot holds, and with -o json which definitions a webhook converts")

// Migration is the transform. A Migration may be planned more than once.
type Migration struct{ opts Options }

// New returns a migration; Plan checks the options.
func New(o Options) *Migration { return &Migration{opts: o} }

// storage is the migration of one storage prefix.
type storage struct {
	*transform.View
	keys     keys.Kubernetes
	opts     *Options
	used     map[Mapping]bool // mappings, without New, of objects in any storage
	kinds    []*kind          // in the order of their names
	renewals *renewals        // nil for none
	section  *Definitions     // of the report
}

// Plan stages the migration on v, for each storage prefix. An error is about reading the snapshot,
// or [ErrNotThere].
func (m *Migration) Plan(ctx context.Context, v *transform.View) error {
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	var all []*kind
	var storages []*storage
	used, renewed, section := map[Mapping]bool{}, newRenewals(&m.opts), &Definitions{}
	for _, prefix := range prefixes {
		s := &storage{View: v, keys: keys.Kubernetes{Prefix: prefix}, opts: &m.opts, used: used, renewals: renewed,
			section: section}
		if err := s.load(ctx); err != nil {
			return err
		}
		all, storages = append(all, s.kinds...), append(storages, s)
	}
	if err := m.opts.checkNames(all); err != nil {
		return err
	}
	v.Report().Sections = append(v.Report().Sections, section)
	for i, s := range storages {
		if err := s.plan(ctx, i == len(storages)-1); err != nil {
			return err
		}
		for _, k := range s.kinds {
			k.summarize(v.Report(), m.opts.To)
			section.CustomResources = append(section.CustomResources, k.row)
		}
	}
	for _, mapping := range m.opts.Mappings {
		if !used[Mapping{Group: mapping.Group, Old: mapping.Old}] {
			v.Raise("", codeMappingUnused.Because("no object that was to be migrated is stored at %s/%s, or its "+
				"definition lists that version",
				mapping.Group, mapping.Old))
		}
	}
	if m.opts.Rewrap {
		return reportStrays(ctx, v, prefixes)
	}
	if renewed != nil {
		for _, n := range renewed.counts {
			section.BuiltinKinds = append(section.BuiltinKinds, *n)
		}
		v.Report().Kinds = append(v.Report().Kinds, section.BuiltinKinds...)
		return nil
	}
	if !slices.ContainsFunc(all, func(k *kind) bool { return k.row.Chosen }) {
		v.Raise("", codeNothingThere.Because("no CustomResourceDefinition of the snapshot is to be migrated"))
	}
	return nil
}

// plan stages the objects of each kind, then its list of versions, and last the references to
// objects.
func (s *storage) plan(ctx context.Context, last bool) error {
	for _, k := range s.kinds {
		if err := s.planKind(ctx, k); err != nil {
			return err
		}
	}
	if last {
		transform.Foresee(s.View)
	}
	return s.sweep(ctx)
}

func (s *storage) planKind(ctx context.Context, k *kind) error {
	if !k.row.Chosen {
		return s.survey(ctx, k)
	}
	ok, err := s.prepare(ctx, k)
	switch {
	case err != nil:
		return err
	case !ok:
		return s.skip(ctx, k)
	}
	if err := s.migrateObjects(ctx, k); err != nil {
		return err
	}
	return s.trimList(ctx, k)
}
