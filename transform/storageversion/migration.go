package storageversion

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// ErrNotThere is returned for an option that names a CustomResourceDefinition or a group that the
// snapshot does not have.
var ErrNotThere = errors.New("not in the snapshot")

// Migration is the transform. It may be planned more than once.
type Migration struct{ opts Options }

// New makes a migration; Plan checks the options.
func New(o Options) *Migration { return &Migration{opts: o} }

// Plan stages the migration on v, for each storage prefix. An error is about reading the snapshot,
// or [ErrNotThere].
func (m *Migration) Plan(ctx context.Context, v *transform.View) error {
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	runs, err := m.runs(ctx, v, prefixes)
	if err != nil {
		return err
	}
	section := &Definitions{}
	v.Report().Sections = append(v.Report().Sections, section)
	chosen, used := 0, map[Mapping]bool{}
	for _, r := range runs {
		if err := r.plan(ctx); err != nil {
			return err
		}
		r.summarize(section)
		chosen += len(r.chosen())
		maps.Copy(used, r.used)
	}
	for _, mapping := range m.opts.Mappings {
		if !used[Mapping{Group: mapping.Group, Old: mapping.Old}] {
			v.Raise("", codeMappingUnused.Because("no object that was to be migrated is stored at %s/%s, or its definition lists that version",
				mapping.Group, mapping.Old))
		}
	}
	if m.opts.Rewrap {
		if err := reportStrays(ctx, v, prefixes); err != nil {
			return err
		}
	}
	if chosen == 0 && !m.opts.Rewrap {
		v.Raise("", codeNothingThere.Because("no CustomResourceDefinition of the snapshot is to be migrated"))
	}
	return nil
}

// runs makes a run for each prefix, its CustomResourceDefinitions loaded, and checks the names in
// the options against all of them.
func (m *Migration) runs(ctx context.Context, v *transform.View, prefixes []string) ([]*run, error) {
	var runs []*run
	names, groups, webhooks := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, prefix := range prefixes {
		r := &run{
			opts: &m.opts, used: map[Mapping]bool{}, view: v, keys: keys.Kubernetes{Prefix: prefix}, byResource: map[schema.GroupResource]*kind{},
		}
		if err := r.load(ctx); err != nil {
			return nil, err
		}
		for _, k := range r.kinds {
			names[k.name] = true
			groups[k.group] = true
			webhooks[k.group] = webhooks[k.group] || k.crd == nil || k.crd.Webhook()
		}
		runs = append(runs, r)
	}
	return runs, m.opts.checkNames(names, groups, webhooks)
}

// run is a migration under one storage prefix.
type run struct {
	opts       *Options
	view       *transform.View
	keys       keys.Kubernetes
	used       map[Mapping]bool // mappings, without New, that some object took
	kinds      []*kind          // in the order of their names
	byResource map[schema.GroupResource]*kind
}

// plan stages one prefix: objects first, then their lists of versions, then references to them.
func (r *run) plan(ctx context.Context) error {
	for _, k := range r.kinds {
		if err := r.migrateKind(ctx, k); err != nil {
			return err
		}
	}
	return r.sweep(ctx)
}

// migrateKind stages the objects of one kind, and then its CustomResourceDefinition.
func (r *run) migrateKind(ctx context.Context, k *kind) error {
	if !k.chosen {
		return r.survey(ctx, k)
	}
	ok, err := k.crd != nil, error(nil)
	if ok {
		ok, err = r.prepare(ctx, k)
	}
	if err != nil || !ok {
		return errors.Join(err, r.skip(ctx, k))
	}
	if err := r.migrateObjects(ctx, k); err != nil {
		return err
	}
	return r.trimList(ctx, k)
}

// chosen are the kinds that the options name.
func (r *run) chosen() []*kind {
	return slices.DeleteFunc(slices.Clone(r.kinds), func(k *kind) bool { return !k.chosen })
}
