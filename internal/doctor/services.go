package doctor

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// decodeAs decodes a value into a typed object; it drops fields that the type does not have.
func decodeAs[T any](e *inspect.Entry) (T, error) { return native.As[T](e.ParseValue()) }

// get returns the entry of an object, nil if the file does not have it.
func (d *doctor) get(prefix, resource, namespace, name string) *inspect.Entry {
	key := keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: resource}, Namespace: namespace, Name: name}
	e, err := d.reader.Get(d.ctx, keys.Kubernetes{Prefix: prefix}.Format(key))
	d.failed(err)
	return e
}

// within yields the objects of a resource in a namespace, "" for all.
func (d *doctor) within(prefix string, gr gvr.GroupResource, namespace string) iter.Seq[*inspect.Entry] {
	dir := keys.Kubernetes{Prefix: prefix}.Dir(gr)
	if namespace != "" {
		dir = append(dir, namespace+"/"...)
	}
	return func(yield func(*inspect.Entry) bool) {
		for e, err := range d.reader.Live(d.ctx, dir) {
			if d.failed(err) || !yield(e) {
				return
			}
		}
	}
}

// service returns a Service, nil if the file does not have it. An unreadable one has its name only.
func (d *doctor) service(prefix, namespace, name string) *corev1.Service {
	svc, err := d.storage(prefix).Service(d.ctx, namespace, name)
	d.failed(err)
	return svc
}

// storage is what lies below a storage prefix.
func (d *doctor) storage(prefix string) machines.Storage {
	return machines.Storage{Source: d.reader, Prefix: prefix}
}

// idle tells whether a Service has no ready endpoint. One that leads out of the cluster needs none.
func (d *doctor) idle(prefix string, svc *corev1.Service) bool {
	idle, err := d.storage(prefix).Idle(d.ctx, svc)
	d.failed(err)
	return idle
}

// addresses returns the ready addresses of a Service.
func (d *doctor) addresses(prefix, namespace, name string) []string {
	ready, err := d.storage(prefix).Addresses(d.ctx, namespace, name)
	d.failed(err)
	return ready
}

// apiService is an APIService (apiregistration.k8s.io).
type apiService struct {
	stored
	machines.APIService
}

// serve keeps an APIService. A server has one for each version of a group that it serves.
func (d *doctor) serve(o stored) {
	fields, err := decodeAs[machines.APIService](o.entry)
	if err != nil {
		d.raise(o.entry.Key, finding.Undecodable, "no APIService: a field is of the wrong type")
		return
	}
	gv := gvr.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}
	if fields.Spec.Service == nil {
		d.local[gv] = true
	} else {
		d.aggregated[gv] = true
	}
	d.apiServices = append(d.apiServices, apiService{o, fields})
}

// checkAPIServices reports silent aggregated API servers, which stop the deletion of namespaces.
func (d *doctor) checkAPIServices() {
	ofCalico := map[string]bool{} // by the prefix
	for _, s := range d.apiServices {
		ref := s.Spec.Service
		ofCalico[s.Prefix] = ofCalico[s.Prefix] || s.Name == calicoAPIService
		if ref == nil {
			if s.Name == calicoAPIService {
				d.checkEmptied(s.Prefix, s.entry.Key)
			}
			continue
		}
		name, hint := ref.Namespace+"/"+ref.Name, ""
		if s.Name == calicoAPIService {
			hint = d.calicoMoves(s.Prefix)
		}
		silence, err := d.storage(s.Prefix).Silent(d.ctx, &s.APIService)
		if d.failed(err) {
			return
		}
		switch silence.State {
		case machines.Answering:
			continue
		case machines.Gone:
			d.raise(s.entry.Key, codeAPIServiceGone, "its Service %s is not there%s", name, hint)
		case machines.Idle:
			d.raise(s.entry.Key, codeAPIServiceEndpoints, "its Service %s has no ready endpoint%s", name, hint)
		case machines.Unavailable:
			d.raise(s.entry.Key, codeAPIServiceUnavailable, "its condition Available was False: %s%s", silence.Reason, hint)
		}
		d.dead = append(d.dead, s.Name)
	}
	for at, def := range d.definitions.all() {
		if at.resource.Group == calicoV3 && at.resource.Resource == "clusterinformations" && !ofCalico[at.prefix] {
			d.checkEmptied(at.prefix, def.entry.Key)
		}
	}
}
