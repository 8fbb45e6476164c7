package doctor

import (
	"iter"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// apiService is an APIService (apiregistration.k8s.io).
type apiService struct {
	stored
	apiServiceFields
}

type apiServiceFields struct {
	Spec struct {
		Group    string                        `json:"group"`
		Version  string                        `json:"version"`
		Service  *admissionv1.ServiceReference `json:"service"`
		CABundle []byte                        `json:"caBundle"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// serve keeps an APIService. A server has one for each version of a group that it serves.
func (d *doctor) serve(o stored) {
	fields, err := decodeAs[apiServiceFields](o.entry)
	if err != nil {
		d.raise(o.entry.Key, codeUndecodable, "no APIService: a field is of the wrong type")
		return
	}
	gv := gvr.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}
	if fields.Spec.Service == nil {
		d.local[gv] = true
		return
	}
	d.aggregated[gv] = true
	d.apiServices = append(d.apiServices, apiService{o, fields})
}

// checkAPIServices reports silent aggregated API servers, which stop the deletion of namespaces.
func (d *doctor) checkAPIServices() {
	for _, s := range d.apiServices {
		ref := s.Spec.Service
		name, hint := ref.Namespace+"/"+ref.Name, ""
		if s.Name == calicoAPIService {
			hint = d.calicoMoves(s.Prefix)
		}
		switch svc := d.service(s.Prefix, ref.Namespace, ref.Name); {
		case svc == nil:
			d.raise(s.entry.Key, codeAPIServiceGone, "its Service %s is not there%s", name, hint)
			d.dead = append(d.dead, s.Name)
		case d.idle(s.Prefix, svc):
			d.raise(s.entry.Key, codeAPIServiceEndpoints, "its Service %s has no ready endpoint%s", name, hint)
			d.dead = append(d.dead, s.Name)
		default:
			for _, c := range s.Status.Conditions {
				if c.Type == "Available" && c.Status == metav1.ConditionFalse {
					d.raise(s.entry.Key, codeAPIServiceUnavailable, "its condition Available was False: %s%s", c.Reason, hint)
					d.dead = append(d.dead, s.Name)
				}
			}
		}
	}
}
