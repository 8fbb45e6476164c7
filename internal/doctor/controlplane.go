package doctor

import (
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Codes about the control plane.
var (
	codeMasterLease     = finding.Lookup("masterlease-stale")
	codeMasterUnlisted  = finding.Lookup("masterlease-unlisted")
	codeMemberRemoval   = finding.Lookup("member-removal")
	codeAddressTwice    = finding.Lookup("address-twice")
	codeAddressLeft     = finding.Lookup("address-left")
	codeNodeSilent      = finding.Lookup("node-silent")
	codeTokenWithoutUse = finding.Lookup("token-without-serviceaccount")
)

// checkMasters checks the addresses of API servers, stored under leases of a few seconds.
func checkMasters(d *doctor) error {
	for _, m := range d.kept["masterleases"] {
		if _, known := d.leases[m.entry.Lease]; !known {
			why := "it has no lease"
			if m.entry.Lease != 0 {
				why = "its lease is gone"
			}
			d.raise(m.entry.Key, codeMasterLease, "%s, so that it never expires, whether an API server has that "+
				"address or not", why)
			continue
		}
		listed, whole, err := d.storage(m.Prefix).Addresses(d.ctx, corev1.NamespaceDefault, "kubernetes")
		if err != nil {
			return err
		}
		if whole && len(listed) > 0 && !slices.ContainsFunc(listed,
			func(ip string) bool { return machines.IP(ip) == machines.IP(m.Name) }) {
			d.raise(m.entry.Key, codeMasterUnlisted, "%s is not among the endpoints of the Service kubernetes", m.Name)
		}
	}
	return nil
}

// checkHeartbeats compares the heartbeats of nodes with the newest one, the only clock of the file.
func checkHeartbeats(d *doctor) error {
	const silence = 5 * time.Minute // nodes renew heartbeats every ten seconds
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
	return nil
}

// checkTokens reports tokens of deleted ServiceAccounts.
func checkTokens(d *doctor) error {
	for _, o := range d.kept["secrets"] {
		secret, err := decodeAs[corev1.Secret](o.entry)
		if err != nil || secret.Type != corev1.SecretTypeServiceAccountToken || !d.whole[o.Prefix] {
			continue
		}
		name, id := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
		e, err := d.storage(o.Prefix).Get(d.ctx, "serviceaccounts", o.Namespace, name)
		if err != nil {
			return err
		}
		if e == nil {
			d.raise(o.entry.Key, codeTokenWithoutUse, "its ServiceAccount %s is not there", name)
			continue
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && id != "" && meta.UID != id {
			d.raise(o.entry.Key, codeTokenWithoutUse,
				"ServiceAccount %s is another one now: its UID is not the token's", name)
		}
	}
	return nil
}

// checkRemovals reports Nodes with an annotation that removes a member from etcd.
func checkRemovals(d *doctor) error {
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
	return nil
}

// checkAddresses reports addresses of several Services, and addresses left behind by a Service.
func checkAddresses(d *doctor) error {
	for _, s := range d.layouts.Storages() {
		clashes, err := d.storage(s.Prefix).Clashes(d.ctx)
		if err != nil {
			return err
		}
		for _, c := range clashes {
			var names []string
			for _, key := range c.Keys {
				names = append(names, strings.TrimPrefix(key, s.Prefix+"/services/specs/"))
			}
			d.raise([]byte(c.Keys[0]), codeAddressTwice, "%s is that of the Services %s", c.What, few(names, 6, ""))
		}
		if err := checkIPAddresses(d, s.Prefix); err != nil {
			return err
		}
	}
	return nil
}

// checkIPAddresses reports IPAddresses that their Services no longer have.
func checkIPAddresses(d *doctor, prefix string) error {
	storage := d.storage(prefix)
	const resource = "ipaddresses.networking.k8s.io"
	return machines.Each(d.ctx, storage, resource, "", func(e *inspect.Entry, address *networkingv1.IPAddress) error {
		of := address.Spec.ParentRef
		if of == nil || of.Group != "" || of.Resource != "services" || !d.whole[prefix] {
			return nil
		}
		svc, err := storage.Service(d.ctx, of.Namespace, of.Name)
		if err != nil {
			return err
		}
		if svc == nil {
			d.raise(e.Key, codeAddressLeft, "its Service %s/%s is not there", of.Namespace, of.Name)
		} else if ips := machines.ClusterIPs(svc); len(ips) > 0 && !slices.Contains(ips, machines.IP(address.Name)) {
			d.raise(e.Key, codeAddressLeft, "its Service %s/%s has %s", of.Namespace, of.Name, list(ips))
		}
		return nil
	})
}

// newFinder returns nil unless a restore on other machines is checked.
func newFinder(d *doctor) (*machines.Finder, error) {
	if !d.options.NewMachines {
		return nil, nil
	}
	var prefixes []string
	for _, s := range d.layouts.Storages() {
		prefixes = append(prefixes, s.Prefix)
	}
	return machines.NewFinder(d.ctx, d.reader, prefixes...)
}

// ties returns the dependencies of an object on machines; none for an unreadable object.
func ties(finder *machines.Finder, e *inspect.Entry, l *look) (found []group) {
	if finder == nil || !l.readable() || !isKubernetes(e) {
		return nil
	}
	for _, tie := range finder.Ties(e) {
		found = append(found, group{tie.Code, tie.Subject})
	}
	return found
}

// checkMachines reports the machine dependencies shared by several objects.
func checkMachines(d *doctor) error {
	if !d.options.NewMachines {
		return nil
	}
	var all []string
	for _, n := range d.kept["nodes"] {
		all = append(all, n.Name)
	}
	if len(all) > 0 {
		d.raiseMany(count{len(all), d.kept["nodes"][0].entry.Key}, machines.CodeOldNodes, "Node",
			"%s of the old machines: %s", few(all, 5, ""))
	}
	cluster, err := d.reader.Snapshot().Cluster(d.ctx)
	if err != nil {
		return err
	}
	var urls []string
	for _, m := range cluster.Members {
		urls = append(urls, m.Name+"="+strings.Join(m.PeerURLs, ","))
	}
	d.raise(nil, machines.CodeNotInFile, "certificates, keys and files of the machines are not in it; members of "+
		"etcd were: %s", few(urls, 5, ""))
	return nil
}

// Codes about aggregated API servers.
var (
	codeAPIServiceGone        = finding.Lookup("apiservice-service-gone")
	codeAPIServiceEndpoints   = finding.Lookup("apiservice-no-endpoints")
	codeAPIServiceUnavailable = finding.Lookup("apiservice-unavailable")
)

// decodeAs decodes a value into a typed object; it drops unknown fields.
func decodeAs[T any](e *inspect.Entry) (T, error) { return native.As[T](e.ParseValue()) }

// storage returns the objects below a storage prefix.
func (d *doctor) storage(prefix string) machines.Storage {
	return machines.Storage{Source: d.reader, Prefix: prefix}
}

// apiService is an APIService (apiregistration.k8s.io).
type apiService struct {
	stored
	machines.APIService
	machines.Silence // of silentServers
}

// serve records an APIService. A server has one for each served version of a group.
func (d *doctor) serve(o stored) {
	fields, err := decodeAs[machines.APIService](o.entry)
	if err != nil {
		d.raise(o.entry.Key, finding.Undecodable, "no APIService: a field is of the wrong type")
		d.unread[plain(o.Resource)] = true
		return
	}
	gv := gvr.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}
	if fields.Spec.Service == nil {
		d.local[gv] = true
	} else {
		d.aggregated[gv] = true
	}
	d.apiServices = append(d.apiServices, apiService{stored: o, APIService: fields})
}

// silentServers yields the APIServices without an answer, which block the deletion of namespaces.
func silentServers(d *doctor) iter.Seq2[apiService, error] {
	return stream.Of(func(yield func(apiService) error) error {
		for _, s := range d.apiServices {
			var err error
			if s.Silence, err = d.storage(s.Prefix).Silent(d.ctx, &s.APIService); err == nil &&
				s.State != machines.Answering {
				err = yield(s)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// checkAPIServices reports silent aggregated API servers.
func checkAPIServices(d *doctor) error {
	return stream.Each(silentServers(d), func(s apiService) (err error) {
		name, hint := s.Spec.Service.Namespace+"/"+s.Spec.Service.Name, ""
		if s.Name == calicoAPIService {
			hint, err = calicoMoves(d, s.Prefix)
		}
		switch s.State {
		case machines.Gone:
			d.raise(s.entry.Key, codeAPIServiceGone, "its Service %s is not there%s", name, hint)
		case machines.Idle:
			d.raise(s.entry.Key, codeAPIServiceEndpoints, "its Service %s has no ready endpoint%s", name, hint)
		case machines.Unavailable:
			d.raise(s.entry.Key, codeAPIServiceUnavailable, "its condition Available was False: %s%s", s.Reason, hint)
		}
		return err
	})
}
