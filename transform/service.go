package transform

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/etcdshift/etcdshift/internal/machines"
)

// serviceSpec is the spec of a Service, in JSON.
type serviceSpec map[string]any

func (s serviceSpec) is(types ...corev1.ServiceType) bool {
	text, _ := s["type"].(string)
	if text == "" {
		text = string(corev1.ServiceTypeClusterIP)
	}
	return slices.Contains(types, corev1.ServiceType(text))
}

func (s serviceSpec) needsClusterIP() bool { return !s.is(corev1.ServiceTypeExternalName) }

func (s serviceSpec) needsNodePorts() bool {
	return s.is(corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
}

func (s serviceSpec) needsHealthCheck() bool {
	return s.is(corev1.ServiceTypeLoadBalancer) &&
		s["externalTrafficPolicy"] == string(corev1.ServiceExternalTrafficPolicyLocal)
}

// isExternal reports whether traffic from outside of the cluster reaches the Service.
func (s serviceSpec) isExternal() bool {
	external, _ := s["externalIPs"].([]any)
	return s.needsNodePorts() || s.is(corev1.ServiceTypeClusterIP) && len(external) > 0
}

func (s serviceSpec) ports() (all []map[string]any) {
	list, _ := s["ports"].([]any)
	for _, one := range list {
		if port, is := one.(map[string]any); is {
			all = append(all, port)
		}
	}
	return all
}

func (s serviceSpec) hasNodePort(port any) bool {
	return slices.ContainsFunc(s.ports(), func(p map[string]any) bool { return reflect.DeepEqual(p["nodePort"], port) })
}

// updateService drops the fields of a Service that its new type does not use, keeps allocated
// values that an update omits, and adapts clusterIPs to clusterIP.
func updateService(before, after map[string]any) {
	was, _ := before["spec"].(map[string]any)
	is, _ := after["spec"].(map[string]any)
	if was == nil || is == nil {
		return
	}
	dropTypeDependent(was, is)
	keepAllocated(was, is)
	status, _ := after["status"].(map[string]any)
	if status["loadBalancer"] != nil && !serviceSpec(is).is(corev1.ServiceTypeLoadBalancer) {
		status["loadBalancer"] = map[string]any{}
	}
}

// dropTypeDependent drops fields that a Service no longer needs. A field that also changes stays:
// the new value is intended.
func dropTypeDependent(was, is serviceSpec) {
	drop := func(fields ...string) {
		for _, field := range fields {
			if reflect.DeepEqual(was[field], is[field]) {
				delete(is, field)
			}
		}
	}
	if was.needsClusterIP() && !is.needsClusterIP() {
		if reflect.DeepEqual(was["clusterIP"], is["clusterIP"]) {
			drop("clusterIPs")
		}
		drop("clusterIP", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
	}
	isNew := func(port map[string]any) bool {
		return port["nodePort"] != nil && port["nodePort"] != int64(0) && !was.hasNodePort(port["nodePort"])
	}
	if was.needsNodePorts() && !is.needsNodePorts() && !slices.ContainsFunc(is.ports(), isNew) {
		for _, port := range is.ports() {
			delete(port, "nodePort")
		}
	}
	if was.needsHealthCheck() && !is.needsHealthCheck() {
		drop("healthCheckNodePort")
	}
	if balanced := corev1.ServiceTypeLoadBalancer; was.is(balanced) && !is.is(balanced) {
		drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
	}
	if was.isExternal() && !is.isExternal() {
		drop("externalTrafficPolicy")
	}
}

func keepAllocated(was, is serviceSpec) {
	keep := func(field string) {
		if value := was[field]; value != nil && (is[field] == nil || is[field] == "") {
			is[field] = value
		}
	}
	if was.needsClusterIP() && is.needsClusterIP() {
		keep("clusterIP")
		keep("clusterIPs")
		followClusterIP(was, is)
	}
	if was.needsHealthCheck() && is.needsHealthCheck() {
		keep("healthCheckNodePort")
	}
	if !was.needsNodePorts() || !is.needsNodePorts() {
		return
	}
	for _, port := range is.ports() {
		same := func(p map[string]any) bool { return reflect.DeepEqual(p["name"], port["name"]) }
		at := slices.IndexFunc(was.ports(), same)
		if port["nodePort"] == nil && at >= 0 && was.ports()[at]["nodePort"] != nil &&
			!is.hasNodePort(was.ports()[at]["nodePort"]) {
			port["nodePort"] = was.ports()[at]["nodePort"]
		}
	}
}

// followClusterIP copies a clusterIP that changed without clusterIPs into clusterIPs, and sets
// ipFamilies to their families.
func followClusterIP(was, is serviceSpec) {
	ips, _ := is["clusterIPs"].([]any)
	if len(ips) == 0 || reflect.DeepEqual(was["clusterIP"], is["clusterIP"]) ||
		!reflect.DeepEqual(was["clusterIPs"], is["clusterIPs"]) {
		return
	}
	ips[0] = is["clusterIP"]
	families := make([]any, 0, len(ips))
	for _, ip := range ips {
		text, _ := ip.(string)
		if machines.IP(text) == "" {
			return // None keeps its families
		}
		family := corev1.IPv4Protocol
		if netutils.IsIPv6String(text) {
			family = corev1.IPv6Protocol
		}
		families = append(families, string(family))
	}
	is["ipFamilies"] = families
}
