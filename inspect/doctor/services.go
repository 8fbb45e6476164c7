package doctor

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// decodeAs decodes a value into a typed object; it drops fields that the type does not have.
func decodeAs[T any](e *inspect.Entry) (out T, err error) {
	v, err := e.ParseValue()
	if err != nil {
		return out, err
	}
	content, err := native.DecodeParsed(v)
	if err != nil {
		return out, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &out)
	return out, err
}

// get returns the entry of an object, nil if the file does not have it.
func (d *doctor) get(prefix, resource, namespace, name string) *inspect.Entry {
	key := keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: resource}, Namespace: namespace, Name: name}
	e, err := d.reader.Get(d.ctx, keys.Kubernetes{Prefix: prefix}.Format(key))
	d.failed(err)
	return e
}

// within yields the objects of a resource in a namespace.
func (d *doctor) within(prefix string, gr gvr.GroupResource, namespace string) iter.Seq[*inspect.Entry] {
	return func(yield func(*inspect.Entry) bool) {
		for e, err := range d.reader.Live(d.ctx, append(keys.Kubernetes{Prefix: prefix}.Dir(gr), namespace+"/"...)) {
			if d.failed(err) || !yield(e) {
				return
			}
		}
	}
}

// service returns a Service, nil if the file does not have it. An unreadable one has its name only.
func (d *doctor) service(prefix, namespace, name string) *corev1.Service {
	if namespace == "" || name == "" {
		return nil
	}
	e := d.get(prefix, "services", namespace, name)
	if e == nil {
		return nil
	}
	out, _ := decodeAs[corev1.Service](e) // reported by checkValue
	out.Namespace, out.Name = namespace, name
	return &out
}

// idle tells whether a Service has no ready endpoint. One that leads out of the cluster needs none.
func (d *doctor) idle(prefix string, svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && len(d.addresses(prefix, svc.Namespace, svc.Name)) == 0
}

// addresses returns the ready addresses of a Service, of its EndpointSlices and of its Endpoints.
func (d *doctor) addresses(prefix, namespace, name string) (ready []string) {
	for e := range d.within(prefix, gvr.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, namespace) {
		slice, err := decodeAs[discoveryv1.EndpointSlice](e)
		if err != nil || slice.Labels[discoveryv1.LabelServiceName] != name {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
	}
	if e := d.get(prefix, "endpoints", namespace, name); e != nil {
		endpoints, _ := decodeAs[corev1.Endpoints](e) //nolint:staticcheck // older clusters have no EndpointSlices
		for _, subset := range endpoints.Subsets {
			for _, a := range subset.Addresses {
				ready = append(ready, a.IP)
			}
		}
	}
	return ready
}
