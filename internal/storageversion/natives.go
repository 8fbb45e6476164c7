package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/transform"
)

// renewals gives objects of built-in kinds the bytes of an update without changes by a release.
type renewals struct {
	native.Target
	kinds  map[gvr.GroupResource]gvr.GroupKind
	counts []*transform.KindCount
}

// newRenewals returns renewals for the release of the options, nil for none.
func newRenewals(o *Options) *renewals {
	if o.Release == 0 {
		return nil
	}
	r := &renewals{
		Target: native.Target{Minor: o.Release, KeepManagedFields: o.KeepManagedFields},
		kinds:  map[gvr.GroupResource]gvr.GroupKind{},
	}
	for _, t := range inspect.Builtins() {
		r.kinds[t.Resource] = gvr.GroupKind{Group: t.Resource.Group, Kind: t.Kind}
	}
	return r
}

// renewal is an object of a built-in kind with other bytes than the release stores.
type renewal struct {
	from gvr.GroupVersionKind
	form *native.Form // nil with an error
	err  error
}

// of returns the renewal of an object, nil if the object stays as it is. Calls may run in parallel.
func (r *renewals) of(e *transform.Entry) *renewal {
	if r == nil || e.Undecryptable != nil {
		return nil
	}
	key, err := e.ParseKey()
	if err != nil || e.CheckKind() != nil { // reported by check
		return nil
	}
	v, err := e.ParseValue()
	if err != nil {
		return nil
	}
	kind, builtin := r.kinds[key.Resource]
	if !builtin { // a kind that was removed, or of an aggregated API server
		if _, last := native.Releases(v.GVK); last == 0 || key.IsCustom() {
			return nil
		}
		kind = v.GVK.GroupKind()
	}
	one := &renewal{from: v.GVK}
	if one.form, one.err = r.Storage(kind, v); one.form == nil && one.err == nil {
		return nil
	}
	return one
}

// renew stages the form of an object, or reports why the object stays as it is.
func (s *storage) renew(ctx context.Context, e *transform.Entry, one *renewal) (err error) {
	staged, to := false, ""
	switch {
	case errors.Is(one.err, native.ErrNotInRelease):
		reason := fmt.Sprintf("Kubernetes 1.%d has no %s", s.opts.Release, one.from.GroupKind())
		if !s.opts.RemoveUnserved {
			s.Raise(string(e.Key), codeNotInRelease.Because("%s", reason))
			s.renewals.count(one.from, "").Skipped++
			return nil
		}
		s.Raise(string(e.Key), codeNotInRelease.Because("%s: deleted", reason))
		s.renewals.count(one.from, "").Deleted++
		return s.Delete(ctx, e.Key)
	case errors.Is(one.err, native.ErrUnknownFields):
		s.Raise(string(e.Key), transform.CodeUnknownFields.Because("%v", one.err))
	case errors.Is(one.err, native.ErrUnchecked):
		s.Raise(string(e.Key), codeUnchecked.Because("%v", one.err))
	case errors.Is(one.err, native.ErrUnread):
		s.Raise(string(e.Key), finding.Undecodable.Because("%v", one.err))
	case one.err != nil:
		s.Raise(string(e.Key), codeVersionDead.Because("%v", one.err))
	case len(one.form.Lost) == 0 || s.Raise(string(e.Key), codePrunedField.Because(
		"%s of Kubernetes 1.%d cannot hold %s", native.Name(one.form.GVK), s.opts.Release,
		finding.List(one.form.Lost))):
		to = one.form.GVK.GroupVersion().String()
		if len(one.form.Managers) > 0 {
			s.Raise(string(e.Key), codeFieldsLost.Because("Kubernetes 1.%d does not serve the versions in its "+
				"managedFields, and drops these managers: %s", s.opts.Release, finding.List(one.form.Managers)))
		}
		if staged, err = s.Derive(ctx, e.Key, e.Key, one.form.Value); err != nil {
			return err
		}
	}
	n := s.renewals.count(one.from, to)
	if staged {
		n.Migrated++
	} else {
		n.Skipped++
	}
	return nil
}

// count returns the counts of objects of a kind that get the apiVersion to, "" for unchanged ones.
func (r *renewals) count(from gvr.GroupVersionKind, to string) *transform.KindCount {
	apiVersion, kind := from.ToAPIVersionAndKind()
	i := slices.IndexFunc(r.counts, func(n *transform.KindCount) bool {
		return n.Kind == kind && n.From == apiVersion && n.To == to
	})
	if i < 0 {
		i, r.counts = len(r.counts), append(r.counts, &transform.KindCount{Kind: kind, From: apiVersion, To: to})
	}
	return r.counts[i]
}
