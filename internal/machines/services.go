package machines

import (
	"bytes"
	"context"
	"iter"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Source is what objects are read from.
type Source interface {
	Get(ctx context.Context, key []byte) (*inspect.Entry, error)
	Live(ctx context.Context, prefix []byte) iter.Seq2[*inspect.Entry, error]
}

// Storage is what lies below one storage prefix of a Source.
type Storage struct {
	Source Source
	Prefix string
}

// mostAliases is how many Services are followed, which may lead in a circle.
const mostAliases = 8

// Service returns a Service, nil if there is none. In place of one that is only a name of another
// in the cluster it returns that one, if it is there. An unreadable one has its name only.
func (s Storage) Service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	svc, err := s.service(ctx, namespace, name)
	for next, left := svc, mostAliases; next != nil && err == nil && left > 0; left-- {
		svc = next
		namespace, name = inside(svc)
		next, err = s.service(ctx, namespace, name)
	}
	return svc, err
}

// inside returns the Service in the cluster that an ExternalName points to; "" for none.
func inside(svc *corev1.Service) (namespace, name string) {
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		return "", ""
	}
	host := strings.TrimSuffix(strings.TrimSuffix(svc.Spec.ExternalName, "."), ".cluster.local")
	host, is := strings.CutSuffix(host, ".svc")
	labels := strings.Split(host, ".")
	if !is || len(labels) < 2 {
		return "", ""
	}
	return labels[len(labels)-1], labels[len(labels)-2] // a name of a Pod of it has more labels before
}

// Outside reports whether a Service is an ExternalName of a host outside the cluster. A restore
// does not stop that host.
func Outside(svc *corev1.Service) bool {
	_, name := inside(svc)
	return svc.Spec.Type == corev1.ServiceTypeExternalName && name == ""
}

// AllOutside returns the Services that lead outside the cluster, those too that lead there over
// others.
func (s Storage) AllOutside(ctx context.Context) (all []admissionv1.ServiceReference, err error) {
	for e, err := range s.Source.Live(ctx, keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.GroupResource{Resource: "services"})) {
		if err != nil {
			return nil, err
		}
		key, err := e.ParseKey()
		if err != nil || !bytes.Contains(e.Value, []byte(corev1.ServiceTypeExternalName)) {
			continue
		}
		svc, err := s.Service(ctx, key.Namespace, key.Name)
		if err != nil {
			return nil, err
		}
		if svc != nil && Outside(svc) {
			all = append(all, admissionv1.ServiceReference{Namespace: key.Namespace, Name: key.Name})
		}
	}
	return all, nil
}

func (s Storage) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	if namespace == "" || name == "" {
		return nil, nil
	}
	e, err := s.get(ctx, "services", namespace, name)
	if e == nil || err != nil {
		return nil, err
	}
	out, _ := native.As[corev1.Service](e.ParseValue()) // others report what does not decode
	out.Namespace, out.Name = namespace, name
	return &out, nil
}

func (s Storage) get(ctx context.Context, resource, namespace, name string) (*inspect.Entry, error) {
	key := keys.Key{Prefix: s.Prefix, Resource: schema.GroupResource{Resource: resource}, Namespace: namespace, Name: name}
	return s.Source.Get(ctx, keys.Kubernetes{Prefix: s.Prefix}.Format(key))
}

// Idle tells whether a Service has no ready endpoint. One that leads out of the cluster needs none.
func (s Storage) Idle(ctx context.Context, svc *corev1.Service) (bool, error) {
	if Outside(svc) {
		return false, nil
	}
	addresses, err := s.Addresses(ctx, svc.Namespace, svc.Name)
	return len(addresses) == 0, err
}

// Addresses returns the ready addresses of a Service, of its EndpointSlices and of its Endpoints.
func (s Storage) Addresses(ctx context.Context, namespace, name string) (ready []string, err error) {
	slices := keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"})
	for e, err := range s.Source.Live(ctx, append(slices, namespace+"/"...)) {
		if err != nil {
			return nil, err
		}
		slice, err := native.As[discoveryv1.EndpointSlice](e.ParseValue())
		if err != nil || slice.Labels[discoveryv1.LabelServiceName] != name {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
	}
	e, err := s.get(ctx, "endpoints", namespace, name)
	if e == nil || err != nil {
		return ready, err
	}
	endpoints, _ := native.As[corev1.Endpoints](e.ParseValue()) //nolint:staticcheck // older clusters have no EndpointSlices
	for _, subset := range endpoints.Subsets {
		for _, a := range subset.Addresses {
			ready = append(ready, a.IP)
		}
	}
	return ready, nil
}

// APIService has the fields of an APIService (apiregistration.k8s.io) that tell what serves its
// group.
type APIService struct {
	Spec struct {
		Group    string                        `json:"group"`
		Version  string                        `json:"version"`
		Service  *admissionv1.ServiceReference `json:"service"` // nil for a group that kube-apiserver serves
		CABundle []byte                        `json:"caBundle"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Silence says why an aggregated API server does not answer.
type Silence struct {
	State  State
	Reason string // of its condition Available, where that is False
}

// State is what there is behind an APIService.
type State int

// The states of aggregated API servers.
const (
	Answering   State = iota // or served by kube-apiserver
	Gone                     // its Service is not there
	Idle                     // its Service has no ready endpoint
	Unavailable              // its condition Available is False, though there are endpoints
)

// Silent tells whether and why the API server of an APIService does not answer.
func (s Storage) Silent(ctx context.Context, a *APIService) (Silence, error) {
	ref := a.Spec.Service
	if ref == nil {
		return Silence{}, nil
	}
	svc, err := s.Service(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return Silence{}, err
	}
	if svc == nil {
		return Silence{State: Gone}, nil
	}
	idle, err := s.Idle(ctx, svc)
	if err != nil || idle {
		return Silence{State: Idle}, err
	}
	for _, c := range a.Status.Conditions {
		if c.Type == "Available" && c.Status == metav1.ConditionFalse {
			return Silence{Unavailable, c.Reason}, nil
		}
	}
	return Silence{}, nil
}
