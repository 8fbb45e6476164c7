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

	"github.com/etcdshift/etcdshift/internal/stream"
)

// joinSet joins the non-empty texts.
func joinSet(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, isEmpty), between)
}

func isEmpty(text string) bool { return text == "" }

// first joins the first texts and counts the rest, as in "a,b,c + 2 more...".
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
		o.Spec.Type, cmp.Or(ip, none), externalIP(o), cmp.Or(strings.Join(ports, ","), none),
		labels.FormatLabels(o.Spec.Selector),
	}
}

func externalIP(o *corev1.Service) string {
	ips := o.Spec.ExternalIPs
	switch o.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return o.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		found := stream.Mapped(o.Status.LoadBalancer.Ingress,
			func(in corev1.LoadBalancerIngress) string { return cmp.Or(in.IP, in.Hostname) })
		return cmp.Or(strings.Join(append(distinct(found), ips...), ","), "<pending>")
	}
	return cmp.Or(strings.Join(ips, ","), none)
}

// distinct returns the non-empty texts, sorted, without duplicates.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.DeleteFunc(slices.Compact(texts), isEmpty)
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
	ports := stream.Mapped(o.Ports, func(p discoveryv1.EndpointPort) string { return fmt.Sprint(orElse(p.Port, "*")) })
	var addresses []string
	for _, e := range o.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	return []any{o.AddressType, cmp.Or(first(3, ports, ","), unset), cmp.Or(first(3, addresses, ","), unset)}
}

func ingressCells(o *networkingv1.Ingress) []any {
	hosts := slices.DeleteFunc(stream.Mapped(o.Spec.Rules, func(r networkingv1.IngressRule) string { return r.Host }),
		isEmpty)
	ports := "80"
	if len(o.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	addresses := stream.Mapped(o.Status.LoadBalancer.Ingress, func(in networkingv1.IngressLoadBalancerIngress) string {
		return cmp.Or(in.IP, in.Hostname)
	})
	return []any{orElse(o.Spec.IngressClassName, none), cmp.Or(first(3, hosts, ","), "*"),
		strings.Join(distinct(addresses), ","), ports}
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
