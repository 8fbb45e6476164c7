package machines

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	netutils "k8s.io/utils/net"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Clash is a cluster IP or a node port that several Services have. An API server gives each to one
// Service only; kube-proxy sends the traffic to one of them.
type Clash struct {
	What string   // "cluster IP 10.96.0.10", "node port 30080"
	Keys []string // of the Services, in the order of the source
}

// Clashes returns the cluster IPs and node ports that more than one Service has, in the order of
// the source.
func (s Storage) Clashes(ctx context.Context) (clashes []Clash, err error) {
	users := map[string][]string{}
	var order []string
	for e, err := range s.Source.Live(ctx, keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.GroupResource{Resource: "services"})) {
		if err != nil {
			return nil, err
		}
		svc, err := native.As[corev1.Service](e.ParseValue())
		if err != nil {
			continue // others report what does not decode
		}
		for _, what := range allocated(&svc) {
			if users[what] = append(users[what], string(e.Key)); len(users[what]) == 2 {
				order = append(order, what)
			}
		}
	}
	for _, what := range order {
		clashes = append(clashes, Clash{what, users[what]})
	}
	return clashes, nil
}

// Allocated are the cluster IPs and node ports of a Service with the content, as a Clash names
// them.
func Allocated(content map[string]any) []string {
	var svc corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &svc); err != nil {
		return nil
	}
	return allocated(&svc)
}

// IP returns an address as IPAddresses and allocators spell it, "" for text that is none, such as
// None. Like API servers, it takes octets with leading zeros for decimal.
func IP(text string) string {
	if ip := netutils.ParseIPSloppy(text); ip != nil {
		return ip.String()
	}
	return ""
}

// allocated are the cluster IPs and node ports of a Service, each once: one node port may serve
// several protocols of the same Service.
func allocated(svc *corev1.Service) (all []string) {
	add := func(format string, value any) {
		if what := fmt.Sprintf(format, value); !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		for _, text := range append([]string{svc.Spec.ClusterIP}, svc.Spec.ClusterIPs...) {
			if ip := IP(text); ip != "" {
				add("cluster IP %s", ip)
			}
		}
	}
	ports := []int32{svc.Spec.HealthCheckNodePort}
	for _, port := range svc.Spec.Ports {
		ports = append(ports, port.NodePort)
	}
	for _, port := range ports {
		if port != 0 {
			add("node port %d", port)
		}
	}
	return all
}

// IPAddresses returns the IPAddress objects by which a Service holds the cluster IPs of content. An
// API server deletes them when the Service gives its IPs up.
func (s Storage) IPAddresses(ctx context.Context, service keys.Key, content map[string]any) (held []*inspect.Entry, err error) {
	resource := schema.GroupResource{Group: networkingv1.GroupName, Resource: "ipaddresses"}
	for _, ip := range clusterIPs(content) {
		e, err := s.Source.Get(ctx, keys.Kubernetes{Prefix: s.Prefix}.Format(keys.Key{Resource: resource, Name: ip}))
		if err != nil {
			return nil, err
		}
		if e == nil || e.Undecryptable != nil {
			continue
		}
		address, err := native.As[networkingv1.IPAddress](e.ParseValue())
		of := address.Spec.ParentRef
		if err == nil && of != nil && of.Resource == "services" && of.Namespace == service.Namespace && of.Name == service.Name {
			held = append(held, e)
		}
	}
	return held, nil
}

// clusterIPs are the cluster IPs of a Service, each once, as IPAddress objects spell them.
func clusterIPs(content map[string]any) (ips []string) {
	spec, _ := content["spec"].(map[string]any)
	list, _ := spec["clusterIPs"].([]any)
	for _, one := range append([]any{spec["clusterIP"]}, list...) {
		text, _ := one.(string)
		if ip := IP(text); ip != "" && !slices.Contains(ips, ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}
