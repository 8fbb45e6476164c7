package doctor

import (
	"context"
	"iter"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// decodeInto decodes a value into a typed object; fields that the type does not have are ignored.
func decodeInto(e *inspect.Entry, into any) error {
	v, err := e.ParseValue()
	if err != nil {
		return err
	}
	content, err := native.DecodeParsed(v)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}

// get reads an object of a Kubernetes storage; nil where it is not in the file.
func (d *doctor) get(ctx context.Context, key keys.Key) (*inspect.Entry, error) {
	return d.reader.Get(ctx, keys.Kubernetes{Prefix: key.Prefix}.Format(key))
}

// service reads a Service of the cluster; nil where it is not in the file.
func (d *doctor) service(ctx context.Context, prefix, namespace, name string) (*corev1.Service, error) {
	if namespace == "" || name == "" {
		return nil, nil
	}
	e, err := d.get(ctx, keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: "services"}, Namespace: namespace, Name: name})
	if err != nil || e == nil {
		return nil, err
	}
	var svc corev1.Service
	_ = decodeInto(e, &svc) // an undecodable value is reported already; here its key counts
	svc.Namespace, svc.Name = namespace, name
	return &svc, nil
}

// idle reports whether a Service has no ready endpoint, which an ExternalName never has.
func (d *doctor) idle(ctx context.Context, prefix string, svc *corev1.Service) (bool, error) {
	if svc == nil || svc.Spec.Type == corev1.ServiceTypeExternalName {
		return false, nil
	}
	ready, err := d.addresses(ctx, prefix, svc.Namespace, svc.Name)
	return len(ready) == 0, err
}

// addresses are the ready addresses of a Service, from its Endpoints and its EndpointSlices.
func (d *doctor) addresses(ctx context.Context, prefix, namespace, name string) (ready []string, err error) {
	e, err := d.get(ctx, keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: "endpoints"}, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	var endpoints corev1.Endpoints //nolint:staticcheck // clusters older than EndpointSlices have nothing else
	if e != nil && decodeInto(e, &endpoints) == nil {
		for _, subset := range endpoints.Subsets {
			for _, a := range subset.Addresses {
				ready = append(ready, a.IP)
			}
		}
	}
	for e, err := range d.within(ctx, prefix, gvr.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, namespace) {
		if err != nil {
			return nil, err
		}
		var slice discoveryv1.EndpointSlice
		if decodeInto(e, &slice) != nil || slice.Labels[discoveryv1.LabelServiceName] != name {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
	}
	return ready, nil
}

// podLabels are the labels of the Pods in a namespace that match a selector.
func (d *doctor) podLabels(ctx context.Context, prefix, namespace string, selector labels.Selector) (sets []labels.Set, err error) {
	for e, err := range d.within(ctx, prefix, gvr.GroupResource{Resource: "pods"}, namespace) {
		if err != nil {
			return nil, err
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && selector.Matches(labels.Set(meta.Labels)) {
			sets = append(sets, meta.Labels)
		}
	}
	return sets, nil
}

// within yields the objects of a resource in a namespace.
func (d *doctor) within(ctx context.Context, prefix string, gr gvr.GroupResource, namespace string) iter.Seq2[*inspect.Entry, error] {
	return d.reader.Live(ctx, append(keys.Kubernetes{Prefix: prefix}.Dir(gr), namespace+"/"...))
}
