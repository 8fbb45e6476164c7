package doctor

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// checkMasters checks the addresses of API servers, which they keep under leases of some seconds.
func (d *doctor) checkMasters() {
	for _, m := range d.kept["masterleases"] {
		if _, known := d.leases[m.entry.Lease]; !known {
			why := "it has no lease"
			if m.entry.Lease != 0 {
				why = "its lease is gone"
			}
			d.raise(m.entry.Key, codeMasterLease, "%s, so that it never expires, whether an API server has that address or not", why)
			continue
		}
		listed := d.addresses(m.Prefix, corev1.NamespaceDefault, "kubernetes")
		if len(listed) > 0 && !slices.ContainsFunc(listed, func(ip string) bool { return machines.IP(ip) == machines.IP(m.Name) }) {
			d.raise(m.entry.Key, codeMasterUnlisted, "%s is not among the endpoints of the Service kubernetes", m.Name)
		}
	}
}

// checkHeartbeats compares the heartbeats of nodes with the newest; the file has no other clock.
func (d *doctor) checkHeartbeats() {
	const silence = 5 * time.Minute // nodes renew them every ten seconds
	var newest time.Time
	for _, at := range d.beats {
		if at.After(newest) {
			newest = at
		}
	}
	for _, n := range d.kept["nodes"] {
		at, beats := d.beats[n.Name]
		if behind := newest.Sub(at); beats && behind > silence {
			d.raise(n.entry.Key, codeNodeSilent, "its last heartbeat was %s, %s before the newest of all nodes",
				at.UTC().Format(time.RFC3339), behind.Round(time.Second))
		}
	}
}

// checkTokens reports tokens of ServiceAccounts that are gone.
func (d *doctor) checkTokens() {
	if d.unread[gvr.GroupResource{Resource: "serviceaccounts"}] {
		return
	}
	for _, o := range d.kept["secrets"] {
		secret, err := decodeAs[corev1.Secret](o.entry)
		if err != nil || secret.Type != corev1.SecretTypeServiceAccountToken || !d.whole[o.Prefix] {
			continue
		}
		name, id := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
		e := d.get(o.Prefix, "serviceaccounts", o.Namespace, name)
		if e == nil {
			d.raise(o.entry.Key, codeTokenWithoutUse, "its ServiceAccount %s is not there", name)
			continue
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && id != "" && meta.UID != id {
			d.raise(o.entry.Key, codeTokenWithoutUse, "ServiceAccount %s is another one now: its UID is not the token's", name)
		}
	}
}

// checkRemovals names Nodes whose annotation takes a member out of etcd.
func (d *doctor) checkRemovals() {
	for _, n := range d.kept["nodes"] {
		meta, err := encoding.ReadMeta(n.entry.Value)
		if err != nil {
			continue // reported as undecodable
		}
		for name, value := range meta.Annotations {
			if machines.Removes(name, value) {
				d.raise(n.entry.Key, codeMemberRemoval, "annotation %s: %q", name, value)
			}
		}
	}
}

// checkClashes names addresses that several Services have, and those that a Service left behind.
func (d *doctor) checkClashes() {
	for _, s := range d.layouts.Storages() {
		clashes, err := d.storage(s.Prefix).Clashes(d.ctx)
		if d.failed(err) {
			return
		}
		for _, c := range clashes {
			var names []string
			for _, key := range c.Keys {
				names = append(names, strings.TrimPrefix(key, s.Prefix+"/services/specs/"))
			}
			d.raise([]byte(c.Keys[0]), codeAddressTwice, "%s is that of the Services %s", c.What, few(names, 6, ""))
		}
		d.checkIPAddresses(s.Prefix)
	}
}

// checkIPAddresses names IPAddresses whose Service is gone.
func (d *doctor) checkIPAddresses(prefix string) {
	resource := gvr.GroupResource{Group: networkingv1.GroupName, Resource: "ipaddresses"}
	for e := range d.within(prefix, resource, "") {
		address, err := decodeAs[networkingv1.IPAddress](e)
		of := address.Spec.ParentRef
		if err != nil || of == nil || of.Group != "" || of.Resource != "services" || !d.whole[prefix] {
			continue
		}
		if d.service(prefix, of.Namespace, of.Name) == nil {
			d.raise(e.Key, codeAddressLeft, "its Service %s/%s is not there", of.Namespace, of.Name)
		}
	}
}
