package columns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// most is how many addresses, ports or hosts a cell names.
const most = 3

// first joins the first few texts and counts the rest, as in "a,b,c + 2 more...".
func first(all []string) string {
	if len(all) <= most {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], ","), len(all)-most)
}

func serviceRow(o *corev1.Service) []any {
	ip := o.Spec.ClusterIP
	if len(o.Spec.ClusterIPs) > 0 {
		ip = o.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range o.Spec.Ports {
		text := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		ports = append(ports, text)
	}
	return []any{
		string(o.Spec.Type), cmp.Or(ip, none), externalIP(o), cmp.Or(strings.Join(ports, ","), none),
		labels.FormatLabels(o.Spec.Selector),
	}
}

func externalIP(o *corev1.Service) string {
	ips := o.Spec.ExternalIPs
	switch o.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return o.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		found := map[string]bool{}
		for _, in := range o.Status.LoadBalancer.Ingress {
			found[cmp.Or(in.IP, in.Hostname)] = true
		}
		delete(found, "")
		all := append(slices.Sorted(maps.Keys(found)), ips...)
		return cmp.Or(strings.Join(all, ","), "<pending>")
	}
	return cmp.Or(strings.Join(ips, ","), none)
}

func endpointsRow(o *corev1.Endpoints) []any {
	var all []string
	for _, s := range o.Subsets {
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				all = append(all, joinHostPort(a.IP, p.Port))
			}
		}
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				all = append(all, a.IP)
			}
		}
	}
	return []any{cmp.Or(first(all), none)}
}

func joinHostPort(ip string, port int32) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return fmt.Sprintf("%s:%d", ip, port)
}

func endpointSliceRow(o *discoveryv1.EndpointSlice) []any {
	var ports, addresses []string
	for _, p := range o.Ports {
		if p.Port == nil {
			ports = append(ports, "*")
			continue
		}
		ports = append(ports, fmt.Sprint(*p.Port))
	}
	for _, e := range o.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{string(o.AddressType), cmp.Or(first(ports), unset), cmp.Or(first(addresses), unset)}
}

func ingressRow(o *networkingv1.Ingress) []any {
	var hosts []string
	for _, r := range o.Spec.Rules {
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	ports := "80"
	if len(o.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var addresses []string
	for _, in := range o.Status.LoadBalancer.Ingress {
		if a := cmp.Or(in.IP, in.Hostname); a != "" && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	return []any{ptr.Deref(o.Spec.IngressClassName, none), cmp.Or(first(hosts), "*"), strings.Join(addresses, ","), ports}
}

func ingressClassRow(o *networkingv1.IngressClass) []any {
	parameters := none
	if p := o.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{o.Spec.Controller, parameters}
}

func ipAddressRow(o *networkingv1.IPAddress) []any {
	p := ptr.Deref(o.Spec.ParentRef, networkingv1.ParentReference{})
	parts := slices.DeleteFunc([]string{p.Group, p.Resource, p.Namespace, p.Name}, func(part string) bool { return part == "" })
	return []any{strings.Join(parts, "/")}
}
