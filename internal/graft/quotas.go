package graft

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// checkQuotas reports ResourceQuotas that the objects of a namespace exceed: an API server would
// have refused the items. A quota of the archive was exceeded in the origin
// too.
func (r *run) checkQuotas() error {
	type space struct{ prefix, namespace string }
	seen := map[space]bool{}
	for _, g := range r.groups() {
		at := space{g.prefix, g.namespace}
		if g.namespace == "" || seen[at] {
			continue
		}
		seen[at] = true
		storage := machines.Storage{Source: r.view, Prefix: g.prefix}
		err := machines.Each(r.ctx, storage, "resourcequotas", g.namespace,
			func(e *transform.Entry, q *corev1.ResourceQuota) error {
				return r.checkQuota(storage, string(e.Key), q)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) checkQuota(storage machines.Storage, key string, q *corev1.ResourceQuota) error {
	now, err := r.view.Time(r.ctx)
	if err != nil {
		return err
	}
	usage, came := native.NewQuota(q, now), native.NewQuota(q, now)
	unread, first, why := 0, "", error(nil)
	for _, t := range r.types.All() {
		if !t.Namespaced || !usage.Counts(t.Resource) {
			continue
		}
		err := stream.Each(storage.Live(r.ctx, t.Resource.String(), q.Namespace), func(e *transform.Entry) error {
			if of, err := e.ParseKey(); err != nil || of.Namespace != q.Namespace || of.Resource != t.Resource {
				return nil
			}
			err := usage.Add(t.Resource, e.Value)
			if err == nil && r.byKey[string(e.Key)] != nil {
				err = came.Add(t.Resource, e.Value)
			}
			if err != nil {
				if unread++; unread == 1 {
					first, why = string(e.Key), err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, one := range usage.Exceeded() {
		found := codeQuotaExceeded.Because("%s is %s, and the namespace uses %s", one.Resource, one.Allowed, one.Used)
		if r.byKey[key] != nil || !came.Uses(one.Resource) {
			found = found.Decided(finding.Noted)
		}
		r.view.Raise(key, found)
	}
	if unread > 0 {
		r.view.Raise(key, codeQuotaExceeded.Because("unknown: the usage of %d objects; the first is %s: %v", unread,
			first, why).Decided(finding.Noted))
	}
	return nil
}
