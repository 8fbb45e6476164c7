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

// decodeInto reads a stored value into a typed object; fields that the type does not know are passed over.
func decodeInto(value []byte, into any) error {
	content, err := native.Decode(value)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}

// object reads one object into a typed one; there is false where it is not in the file. One that cannot be read leaves into as it is.
func (d *doctor) object(ctx context.Context, key keys.Key, into any) (there bool, err error) {
	e, err := d.reader.Get(ctx, keys.Kubernetes{Prefix: key.Prefix}.Format(key))
	if err != nil || e == nil {
		return false, err
	}
	if e.Undecryptable == nil {
		_ = decodeInto(e.Value, into) // a value that does not decode was told of; that it is there is what counts
	}
	return true, nil
}

// service is a Service of the cluster, nil where it is not there.
func (d *doctor) service(ctx context.Context, prefix, namespace, name string) (*corev1.Service, error) {
	if namespace == "" || name == "" {
		return nil, nil
	}
	var out corev1.Service
	there, err := d.object(ctx, keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: "services"}, Namespace: namespace, Name: name}, &out)
	if !there {
		return nil, err
	}
	out.Namespace, out.Name = namespace, name
	return &out, err
}

// idle says that a Service has no ready endpoint. One that leads out of the cluster has none to have.
func (d *doctor) idle(ctx context.Context, prefix string, svc *corev1.Service) (bool, error) {
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return false, nil
	}
	var endpoints corev1.Endpoints //nolint:staticcheck // clusters of before EndpointSlices have nothing else
	if _, err := d.object(ctx, keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: "endpoints"}, Namespace: svc.Namespace, Name: svc.Name}, &endpoints); err != nil {
		return false, err
	}
	for _, subset := range endpoints.Subsets {
		if len(subset.Addresses) > 0 {
			return false, nil
		}
	}
	addresses, err := d.addresses(ctx, prefix, svc.Namespace, svc.Name)
	return len(addresses) == 0, err
}

// addresses are the ready ones of a Service's EndpointSlices.
func (d *doctor) addresses(ctx context.Context, prefix, namespace, name string) (ready []string, err error) {
	for e, err := range d.within(ctx, prefix, gvr.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, namespace) {
		if err != nil {
			return nil, err
		}
		var slice discoveryv1.EndpointSlice
		if e.Undecryptable != nil || decodeInto(e.Value, &slice) != nil || slice.Labels[discoveryv1.LabelServiceName] != name {
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

// podLabels are the labels of the Pods in a namespace that selector takes.
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
