package patch

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/transform"
)

// moveAddresses deletes the IPAddress objects of cluster IPs that a patched Service gave up, and
// keeps the addresses that are new to it. For a new cluster IP an API server makes an IPAddress at
// its start.
func (p *patch) moveAddresses(ctx context.Context, v *transform.View, o *inspect.Object, after map[string]any) error {
	had := machines.Allocated(o.Content)
	gained := slices.DeleteFunc(machines.Allocated(after), func(what string) bool { return slices.Contains(had, what) })
	if len(gained) > 0 {
		p.gain(o, gained)
	}
	if is := at(after, []string{"spec", "type"}); is != "ExternalName" && is != at(o.Content, []string{"spec", "type"}) &&
		at(after, []string{"spec", "clusterIP"}) == nil {
		v.Raise(string(o.Key), codeNoAddress.Because("its type is %v", is))
	}
	if lacksNodePorts(after) && !lacksNodePorts(o.Content) {
		const choose = "after the restore, have an API server choose the node ports of Service %[1]s/%[2]s: " +
			"kubectl -n %[1]s get service %[2]s -o json | kubectl replace -f -"
		v.Report().AddStep(choose, o.Parsed.Namespace, o.Parsed.Name)
	}
	storage := machines.Storage{Source: v, Prefix: o.Parsed.Prefix}
	held, err := storage.IPAddresses(ctx, o.Parsed, o.Content)
	if err != nil {
		return err
	}
	still, err := storage.IPAddresses(ctx, o.Parsed, after)
	if err != nil {
		return err
	}
	for _, e := range held {
		same := func(other *transform.Entry) bool { return string(other.Key) == string(e.Key) }
		if slices.ContainsFunc(still, same) {
			continue
		}
		if err := v.Delete(ctx, e.Key); err != nil {
			return err
		}
	}
	return nil
}

// lacksNodePorts reports whether an API server would allocate node ports with an update.
func lacksNodePorts(content map[string]any) bool {
	var s corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s) != nil {
		return false
	}
	needs := s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true)
	return needs && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == 0 })
}

func (p *patch) gain(o *inspect.Object, addresses []string) {
	if p.gained == nil {
		p.gained = map[string][]string{}
	}
	p.gained[string(o.Key)] = addresses
	if !slices.Contains(p.prefixes, o.Parsed.Prefix) {
		p.prefixes = append(p.prefixes, o.Parsed.Prefix)
	}
}

// checkAddresses reports patched Services that gained a cluster IP or node port of another Service.
func (p *patch) checkAddresses(ctx context.Context, v *transform.View) error {
	for _, prefix := range p.prefixes {
		clashes, err := machines.Storage{Source: v, Prefix: prefix}.Clashes(ctx)
		if err != nil {
			return err
		}
		for _, clash := range clashes {
			for _, key := range clash.Keys {
				if !slices.Contains(p.gained[key], clash.What) {
					continue
				}
				others := slices.DeleteFunc(slices.Clone(clash.Keys), func(other string) bool { return other == key })
				v.Raise(key, codeAddress.Because("%s is that of %s too", clash.What, strings.Join(others, ", ")))
			}
		}
	}
	return nil
}
