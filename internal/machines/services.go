package machines

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	netutils "k8s.io/utils/net"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// Service returns a Service, nil if there is none. An alias of another Service in the cluster is
// replaced by that Service, if it exists. An unreadable Service has only its name.
func (s Storage) Service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	const mostAliases = 8 // aliases may be circular
	svc, err := s.service(ctx, namespace, name)
	for next, left := svc, mostAliases; next != nil && err == nil && left > 0; left-- {
		svc = next
		namespace, name = inside(svc)
		next, err = s.service(ctx, namespace, name)
	}
	return svc, err
}

func (s Storage) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	if namespace == "" || name == "" {
		return nil, nil
	}
	e, err := s.Get(ctx, "services", namespace, name)
	if e == nil || err != nil {
		return nil, err
	}
	out, _ := native.As[corev1.Service](e.ParseValue()) // undecodable values are reported elsewhere
	out.Namespace, out.Name = namespace, name
	return &out, nil
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
	return labels[len(labels)-1], labels[len(labels)-2] // the name of a Pod of the Service has more labels before
}

// Outside reports whether a Service is an ExternalName of a host outside the cluster. A restore
// does not stop that host.
func Outside(svc *corev1.Service) bool {
	_, name := inside(svc)
	return svc.Spec.Type == corev1.ServiceTypeExternalName && name == ""
}

// allOutside returns the Services leading outside the cluster, also through other Services.
func (s Storage) allOutside(ctx context.Context) (all []admissionv1.ServiceReference, err error) {
	err = stream.Each(s.Live(ctx, "services", ""), func(e *inspect.Entry) error {
		key, err := e.ParseKey()
		if err != nil || !bytes.Contains(e.Value, []byte(corev1.ServiceTypeExternalName)) {
			return nil
		}
		svc, err := s.Service(ctx, key.Namespace, key.Name)
		if err == nil && svc != nil && Outside(svc) {
			all = append(all, admissionv1.ServiceReference{Namespace: key.Namespace, Name: key.Name})
		}
		return err
	})
	return all, err
}

// Idle reports whether a Service has no ready endpoint. A Service outside the cluster needs none.
// The result is false if the Service or its endpoints are unreadable.
func (s Storage) Idle(ctx context.Context, svc *corev1.Service) (bool, error) {
	readable, err := read[corev1.Service](ctx, s, "services", svc.Namespace, svc.Name)
	if err != nil || readable == nil || Outside(svc) {
		return false, err
	}
	addresses, whole, err := s.Addresses(ctx, svc.Namespace, svc.Name)
	return whole && len(addresses) == 0, err
}

// Addresses returns the ready addresses of a Service, from its EndpointSlices and its Endpoints.
// whole is false if one of them is unreadable.
func (s Storage) Addresses(ctx context.Context, namespace, name string) (ready []string, whole bool, err error) {
	const endpointSlices = "endpointslices.discovery.k8s.io"
	whole = true
	err = stream.Each(s.Live(ctx, endpointSlices, namespace), func(e *inspect.Entry) error {
		slice, err := native.As[discoveryv1.EndpointSlice](e.ParseValue())
		whole = whole && err == nil
		for _, endpoint := range slice.Endpoints {
			if slice.Labels[discoveryv1.LabelServiceName] == name &&
				(endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
				ready = append(ready, endpoint.Addresses...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	e, err := s.Get(ctx, "endpoints", namespace, name)
	if e == nil || err != nil {
		return ready, whole, err
	}
	endpoints, err := native.As[corev1.Endpoints](
		e.ParseValue()) //nolint:staticcheck // older clusters have no EndpointSlices
	whole = whole && err == nil
	for _, subset := range endpoints.Subsets {
		for _, a := range subset.Addresses {
			ready = append(ready, a.IP)
		}
	}
	return ready, whole, nil
}

// APIService has the fields of an APIService (apiregistration.k8s.io) about the server of its
// group.
type APIService struct {
	Spec struct {
		Group    string                        `json:"group"`
		Version  string                        `json:"version"`
		Service  *admissionv1.ServiceReference `json:"service"` // nil for a group served by kube-apiserver
		CABundle []byte                        `json:"caBundle"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Silence is the reason why an aggregated API server does not answer.
type Silence struct {
	State  State
	Reason string // of its condition Available, if that is False
}

// State is the state of the API server of an APIService.
type State int

// The states of aggregated API servers.
const (
	Answering   State = iota // or served by kube-apiserver
	Gone                     // its Service does not exist
	Idle                     // its Service has no ready endpoint
	Unavailable              // its condition Available is False, although there are endpoints
)

// Silent reports whether and why the API server of an APIService does not answer.
func (s Storage) Silent(ctx context.Context, a *APIService) (Silence, error) {
	ref := a.Spec.Service
	if ref == nil {
		return Silence{}, nil
	}
	svc, err := s.Service(ctx, ref.Namespace, ref.Name)
	if err != nil || svc == nil {
		return Silence{State: Gone}, err
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

// Clash is a cluster IP or a node port of several Services. An API server gives each to only one
// Service; kube-proxy sends the traffic to one of them.
type Clash struct {
	What string   // "cluster IP 10.96.0.10", "node port 30080"
	Keys []string // of the Services, in the order of the source
}

// Clashes returns the cluster IPs and node ports of more than one Service, in the order of the
// source.
func (s Storage) Clashes(ctx context.Context) (clashes []Clash, err error) {
	users := map[string][]string{}
	var order []string
	err = Each(ctx, s, "services", "", func(e *inspect.Entry, svc *corev1.Service) error {
		for _, what := range allocated(svc) {
			if users[what] = append(users[what], string(e.Key)); len(users[what]) == 2 {
				order = append(order, what)
			}
		}
		return nil
	})
	for _, what := range order {
		clashes = append(clashes, Clash{what, users[what]})
	}
	return clashes, err
}

// Allocated returns the cluster IPs and node ports of a Service with the content, in the form of
// Clash.
func Allocated(content map[string]any) []string { return allocated(serviceOf(content)) }

// allocated returns the cluster IPs and node ports of a Service without duplicates: one node port
// may serve several protocols of the same Service.
func allocated(svc *corev1.Service) (all []string) {
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		for _, ip := range ClusterIPs(svc) {
			all = append(all, "cluster IP "+ip)
		}
	}
	ports := []int32{svc.Spec.HealthCheckNodePort}
	for _, port := range svc.Spec.Ports {
		ports = append(ports, port.NodePort)
	}
	for _, port := range ports {
		if what := fmt.Sprintf("node port %d", port); port != 0 && !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	return all
}

// ServiceCIDRs returns the ranges of cluster IPs, nil if the source has no ServiceCIDR.
func (s Storage) ServiceCIDRs(ctx context.Context) (ranges []string, err error) {
	err = Each(ctx, s, "servicecidrs.networking.k8s.io", "",
		func(_ *inspect.Entry, c *networkingv1.ServiceCIDR) error {
			ranges = append(ranges, c.Spec.CIDRs...)
			return nil
		})
	return ranges, err
}

// Unallocatable returns why no API server with these ranges allocates an address in the form of
// Clash, "" if one may.
func Unallocatable(what string, ranges []string) string {
	if port, is := strings.CutPrefix(what, "node port "); is {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "is not in the range from 1 to 65535"
		}
		return ""
	}
	ip := netutils.ParseIPSloppy(strings.TrimPrefix(what, "cluster IP "))
	inside := func(cidr string) bool {
		_, of, err := netutils.ParseCIDRSloppy(cidr)
		return err != nil || of.Contains(ip)
	}
	if len(ranges) == 0 || slices.ContainsFunc(ranges, inside) {
		return ""
	}
	return "is outside of the ServiceCIDRs: " + strings.Join(ranges, ", ")
}

// serviceOf returns a Service with the content, or an empty Service if content does not fit.
func serviceOf(content map[string]any) *corev1.Service {
	var svc corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &svc) != nil {
		return &corev1.Service{}
	}
	return &svc
}

// ClusterIPs returns the cluster IPs of a Service, without duplicates.
func ClusterIPs(svc *corev1.Service) (ips []string) {
	for _, text := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
		if ip := IP(text); ip != "" && !slices.Contains(ips, ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// IP returns an address in the spelling of IPAddresses and allocators, "" for other text, such as
// None. Like API servers, it reads octets with leading zeros as decimal.
func IP(text string) string {
	if ip := netutils.ParseIPSloppy(text); ip != nil {
		return ip.String()
	}
	return ""
}

// IPAddresses returns the IPAddress objects that reserve the cluster IPs of content for a Service.
// An API server deletes them when the Service releases its IPs.
func (s Storage) IPAddresses(
	ctx context.Context, service keys.Key, content map[string]any,
) (held []*inspect.Entry, err error) {
	for _, ip := range ClusterIPs(serviceOf(content)) {
		e, err := s.Get(ctx, "ipaddresses.networking.k8s.io", "", ip)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		address, err := native.As[networkingv1.IPAddress](e.ParseValue())
		of := address.Spec.ParentRef
		if err == nil && of != nil && of.Resource == "services" && of.Namespace == service.Namespace &&
			of.Name == service.Name {
			held = append(held, e)
		}
	}
	return held, nil
}
