package storageversion

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// ErrNotThere is returned for an option that names a CustomResourceDefinition or a group that the
// snapshot does not have.
var ErrNotThere = finding.WithHint(errors.New("not in the snapshot"),
	"\"etcdshift status\" lists what the snapshot holds, and with -o json which definitions a webhook converts")

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
	used := map[Mapping]bool{}
	runs, err := m.runs(ctx, v, prefixes, used)
	if err != nil {
		return err
	}
	section := &Definitions{}
	v.Report().Sections = append(v.Report().Sections, section)
	chosen := 0
	for _, r := range runs {
		if r.plan(); r.Err != nil {
			return r.Err
		}
		r.summarize(section)
		chosen += len(r.chosen())
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
func (m *Migration) runs(ctx context.Context, v *transform.View, prefixes []string, used map[Mapping]bool) (runs []*run, err error) {
	var all []*kind
	for _, prefix := range prefixes {
		r := &run{
			Store: &transform.Store{Ctx: ctx, View: v, Keys: keys.Kubernetes{Prefix: prefix}},
			opts:  &m.opts, used: used, defined: sets.New[schema.GroupResource](),
		}
		if r.load(); r.Err != nil {
			return nil, r.Err
		}
		all = append(all, r.kinds...)
		runs = append(runs, r)
	}
	return runs, m.opts.checkNames(all)
}

// run is a migration under one storage prefix.
type run struct {
	*transform.Store
	opts    *Options
	used    map[Mapping]bool               // mappings, without New, that some object took in any run
	kinds   []*kind                        // in the order of their names
	defined sets.Set[schema.GroupResource] // resources of kinds
}

// plan stages one prefix: objects first, then their lists of versions, then references to them.
func (r *run) plan() {
	for _, k := range r.kinds {
		switch {
		case !k.chosen:
			r.survey(k)
		case k.crd == nil || !r.prepare(k):
			r.skip(k)
		default: // the objects, and then the CustomResourceDefinition
			r.migrateObjects(k)
			r.trimList(k)
		}
	}
	r.sweep()
}

func (r *run) chosen() []*kind {
	return slices.DeleteFunc(slices.Clone(r.kinds), func(k *kind) bool { return !k.chosen })
}
