package doctor

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// silence is how far a node's heartbeat may be behind the newest of all; kubelets renew them every
// ten seconds.
const silence = 5 * time.Minute

func (d *doctor) concludeControlPlane(ctx context.Context) error {
	if err := d.checkMasters(ctx); err != nil {
		return err
	}
	d.checkHeartbeats()
	return d.checkTokens(ctx)
}

// checkMasters checks the addresses that API servers store for the Service kubernetes, each with a
// lease of some seconds.
func (d *doctor) checkMasters(ctx context.Context) error {
	for _, m := range d.kept["masterleases"] {
		if _, known := d.leases[m.entry.Lease]; !known {
			why := "it has no lease"
			if m.entry.Lease != 0 {
				why = "its lease is gone"
			}
			d.raise(m.entry.Key, codeMasterLease.Because("%s, so that it never expires, whether an API server has that address or not", why))
			continue
		}
		listed, err := d.addresses(ctx, m.key.Prefix, corev1.NamespaceDefault, "kubernetes")
		if err != nil {
			return err
		}
		if len(listed) > 0 && !slices.Contains(listed, m.key.Name) {
			d.raise(m.entry.Key, codeMasterUnlisted.Because("%s is not among the endpoints of the Service kubernetes", m.key.Name))
		}
	}
	return nil
}

// checkHeartbeats compares the heartbeats of nodes with each other, never with a clock.
func (d *doctor) checkHeartbeats() {
	beats := map[string]time.Time{}
	var newest time.Time
	for _, h := range d.kept["leases.coordination.k8s.io"] {
		var lease coordinationv1.Lease
		if decodeInto(h.entry, &lease) != nil || lease.Spec.RenewTime == nil {
			continue
		}
		at := lease.Spec.RenewTime.Time
		beats[h.key.Name] = at
		if at.After(newest) {
			newest = at
		}
	}
	for _, n := range d.kept["nodes"] {
		at, beats := beats[n.key.Name]
		if behind := newest.Sub(at); beats && behind > silence {
			d.raise(n.entry.Key, codeNodeSilent.Because(
				"its last heartbeat was %s, %s before the newest of all nodes", at.UTC().Format(time.RFC3339), behind.Round(time.Second)))
		}
	}
}

// checkTokens reports tokens of ServiceAccounts that are gone.
func (d *doctor) checkTokens(ctx context.Context) error {
	accounts := gvr.GroupResource{Resource: "serviceaccounts"}
	if d.unread[accounts] {
		return nil
	}
	for _, s := range d.kept["secrets"] {
		var secret corev1.Secret
		if decodeInto(s.entry, &secret) != nil || secret.Type != corev1.SecretTypeServiceAccountToken || !d.wholeCluster(s.key.Prefix) {
			continue
		}
		name, id := secret.Annotations[corev1.ServiceAccountNameKey], secret.Annotations[corev1.ServiceAccountUIDKey]
		e, err := d.get(ctx, keys.Key{Prefix: s.key.Prefix, Resource: accounts, Namespace: s.key.Namespace, Name: name})
		if err != nil {
			return err
		}
		if e == nil {
			d.raise(s.entry.Key, codeTokenWithoutUse.Because("its ServiceAccount %s is not there", name))
			continue
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && id != "" && meta.UID != id {
			d.raise(s.entry.Key, codeTokenWithoutUse.Because("ServiceAccount %s is another one now: its UID is not the token's", name))
		}
	}
	return nil
}
