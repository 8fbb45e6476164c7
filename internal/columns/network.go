package columns

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// joinSet joins the texts that are not empty.
func joinSet(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}

// first joins the first few texts and counts the rest, as in "a,b,c + 2 more...".
func first(most int, all []string, between string) string {
	if len(all) <= most {
		return strings.Join(all, between)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], between), len(all)-most)
}

func serviceCells(o *corev1.Service) []any {
	ip := o.Spec.ClusterIP
	if len(o.Spec.ClusterIPs) > 0 {
		ip = o.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range o.Spec.Ports {
		node := ""
		if p.NodePort > 0 {
			node = fmt.Sprintf(":%d", p.NodePort)
		}
		ports = append(ports, fmt.Sprintf("%d%s/%s", p.Port, node, p.Protocol))
	}
	return []any{
		o.Spec.Type, cmp.Or(ip, none), externalIP(o), cmp.Or(strings.Join(ports, ","), none), labels.FormatLabels(o.Spec.Selector),
	}
}

func externalIP(o *corev1.Service) string {
	ips := o.Spec.ExternalIPs
	switch o.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return o.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var found []string
		for _, in := range o.Status.LoadBalancer.Ingress {
			found = append(found, cmp.Or(in.IP, in.Hostname))
		}
		return cmp.Or(strings.Join(append(distinct(found), ips...), ","), "<pending>")
	}
	return cmp.Or(strings.Join(ips, ","), none)
}

// distinct returns the texts that are not empty, sorted, each once.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.DeleteFunc(slices.Compact(texts), func(text string) bool { return text == "" })
}

func endpointsCells(o *corev1.Endpoints) []any {
	var all []string
	for _, s := range o.Subsets {
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				all = append(all, net.JoinHostPort(a.IP, fmt.Sprint(p.Port)))
			}
		}
		if len(s.Ports) == 0 {
			for _, a := range s.Addresses {
				all = append(all, a.IP)
			}
		}
	}
	return []any{cmp.Or(first(3, all, ","), none)}
}

func endpointSliceCells(o *discoveryv1.EndpointSlice) []any {
	var ports, addresses []string
	for _, p := range o.Ports {
		ports = append(ports, fmt.Sprint(orElse(p.Port, "*")))
	}
	for _, e := range o.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{o.AddressType, cmp.Or(first(3, ports, ","), unset), cmp.Or(first(3, addresses, ","), unset)}
}

func ingressCells(o *networkingv1.Ingress) []any {
	var hosts, addresses []string
	for _, r := range o.Spec.Rules {
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	ports := "80"
	if len(o.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	for _, in := range o.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(in.IP, in.Hostname))
	}
	return []any{orElse(o.Spec.IngressClassName, none), cmp.Or(first(3, hosts, ","), "*"), strings.Join(distinct(addresses), ","), ports}
}

func ingressClassCells(o *networkingv1.IngressClass) []any {
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
