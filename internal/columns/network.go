package columns

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// most is how many addresses, ports or hosts a cell names.
const most = 3

// first joins the first few and counts the rest, as in "a,b,c + 2 more...".
func first(all []string) string {
	if len(all) <= most {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], ","), len(all)-most)
}

func serviceRow(o *corev1.Service, now time.Time) []any {
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
		o.Name, string(o.Spec.Type), or(ip, none), externalIP(o), or(strings.Join(ports, ","), none), age(o.CreationTimestamp, now),
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
			found[or(in.IP, in.Hostname)] = true
		}
		delete(found, "")
		all := append(slices.Sorted(maps.Keys(found)), ips...)
		return or(strings.Join(all, ","), "<pending>")
	}
	return or(strings.Join(ips, ","), none)
}

func endpointsRow(o *corev1.Endpoints, now time.Time) []any {
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
	return []any{o.Name, or(first(all), none), age(o.CreationTimestamp, now)}
}

func joinHostPort(ip string, port int32) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return fmt.Sprintf("%s:%d", ip, port)
}

func endpointSliceRow(o *discoveryv1.EndpointSlice, now time.Time) []any {
	var ports, addresses []string
	for _, p := range o.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, fmt.Sprint(*p.Port))
		default:
			ports = append(ports, "*")
		}
	}
	for _, e := range o.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{o.Name, string(o.AddressType), or(first(ports), unset), or(first(addresses), unset), age(o.CreationTimestamp, now)}
}

func ingressRow(o *networkingv1.Ingress, now time.Time) []any {
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
		if a := or(in.IP, in.Hostname); a != "" && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	return []any{o.Name, deref(o.Spec.IngressClassName, none), or(first(hosts), "*"), strings.Join(addresses, ","), ports, age(o.CreationTimestamp, now)}
}

func ingressClassRow(o *networkingv1.IngressClass, now time.Time) []any {
	parameters := none
	if p := o.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{o.Name, o.Spec.Controller, parameters, age(o.CreationTimestamp, now)}
}

func networkPolicyRow(o *networkingv1.NetworkPolicy, now time.Time) []any {
	return []any{o.Name, selector(&o.Spec.PodSelector), age(o.CreationTimestamp, now)}
}

func ipAddressRow(o *networkingv1.IPAddress, _ time.Time) []any {
	var parts []string
	if p := o.Spec.ParentRef; p != nil {
		for _, part := range []string{p.Group, p.Resource, p.Namespace, p.Name} {
			if part != "" {
				parts = append(parts, part)
			}
		}
	}
	return []any{o.Name, strings.Join(parts, "/")}
}

func serviceCIDRRow(o *networkingv1.ServiceCIDR, now time.Time) []any {
	return []any{o.Name, strings.Join(o.Spec.CIDRs, ","), age(o.CreationTimestamp, now)}
}
