package doctor

import (
	"cmp"
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// look is what doctor reads from the value of one object.
type look struct {
	apiVersion, kind, name, namespace []byte // type only where err is errMetadata

	uid     uid
	hasUID  bool
	owners  []encoding.Owner
	managed [][]byte       // the apiVersions in managedFields, sorted; of custom resources
	meta    *encoding.Meta // nil where it was not needed
	err     error          // of decode
	beat    *time.Time     // of a node's Lease
}

// readable reports whether an API server can decode the value. A kind that this build does not know
// counts as readable: an API server of another version may know it.
func (l *look) readable() bool { return l.err == nil || errors.Is(l.err, native.ErrUnknownKind) }

// lookAt reads a value. It decodes what its bytes do not tell.
func lookAt(e *inspect.Entry) (l look) {
	key, err := e.ParseKey()
	if err != nil {
		return l // see checkEntry
	}
	var g encoding.Glance
	if !e.Glance(&g) || needsMeta(key, &g) {
		meta, err := decode(e)
		l.meta, l.err = &meta, err
		g = glance(&meta)
		if keys.IsCustom(key.Resource) {
			g.Managed = managedVersions(e.Value)
		}
	}
	l.apiVersion, l.kind, l.name, l.namespace, l.owners = g.APIVersion, g.Kind, g.Name, g.Namespace, g.Owners
	l.managed = sorted(g.Managed)
	if machines.IsNodeLease(key) {
		if lease, err := decodeAs[coordinationv1.Lease](e); err == nil && lease.Spec.RenewTime != nil {
			l.beat = &lease.Spec.RenewTime.Time
		}
	}
	if l.hasUID = len(g.UID) > 0; l.hasUID {
		l.uid = toUID(g.UID)
	}
	return l
}

// needsMeta tells whether keep needs more of an object than a glance has.
func needsMeta(key keys.Key, g *encoding.Glance) bool {
	return key.Resource == gvr.GroupResource{Resource: "namespaces"} ||
		key.Resource == gvr.GroupResource{Resource: "secrets"} && len(g.Annotations) > 0
}

// glance is the Glance of decoded metadata.
func glance(m *encoding.Meta) encoding.Glance {
	g := encoding.Glance{
		APIVersion: []byte(m.APIVersion), Kind: []byte(m.Kind), Name: []byte(m.Name), Namespace: []byte(m.Namespace), UID: []byte(m.UID),
	}
	for _, o := range m.OwnerReferences {
		g.Owners = append(g.Owners, encoding.Owner{APIVersion: []byte(o.APIVersion), Kind: []byte(o.Kind), UID: []byte(o.UID)})
	}
	return g
}

// uidText is the UID for people.
func (l *look) uidText(e *inspect.Entry) string {
	meta, _ := encoding.ReadMeta(e.Value) // did not fail before
	return meta.UID
}

// each calls see with the entries whose keys begin with prefix, on all processors, and apply with
// each result, in the order of the file, up to an error. see must not use d. ruled is false where
// the budget for rules of CustomResourceDefinitions was used up before.
func each[T any](d *doctor, prefix []byte, see func(context.Context, *inspect.Entry) T,
	apply func(e *inspect.Entry, result *T, ruled bool) error,
) error {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	type seen struct {
		*inspect.Entry
		meter  *bounded.Meter
		result T
	}
	item := func(e *inspect.Entry) (seen, int) { return seen{Entry: e, meter: d.rules.Meter()}, len(e.Value) }
	work := func(s *seen) {
		if ctx.Err() == nil { // else the scan ends with it
			s.result = see(bounded.WithMeter(ctx, s.meter), s.Entry)
		}
	}
	all := stream.Ahead(d.reader.Snapshot().Guard, d.reader.Live(ctx, prefix), item, work)
	return stream.Each(all, func(s *seen) error {
		err := cmp.Or(d.ctx.Err(), apply(s.Entry, &s.result, s.meter.Take()))
		if err != nil {
			cancel()
		}
		return err
	})
}
