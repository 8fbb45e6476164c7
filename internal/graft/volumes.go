package graft

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

const claims, volumes = "persistentvolumeclaims", "persistentvolumes"

// storages returns the storages with items of the given types, or of any type.
func (r *run) storages(resources ...string) (all []machines.Storage) {
	prefixes := map[string]bool{}
	for _, it := range r.items {
		if it.key.Name != "" && (resources == nil || slices.Contains(resources, it.key.Resource.String())) {
			prefixes[it.key.Prefix] = true
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		all = append(all, machines.Storage{Source: r.view, Prefix: prefix})
	}
	return all
}

// checkVolumes reports claims and volumes that do not name each other: the volume of another claim,
// and a volume whose claim is gone, which its reclaim policy destroys.
func (r *run) checkVolumes() error {
	for _, storage := range r.storages(claims, volumes) {
		handles := map[[2]string]string{} // keys by driver and handle
		err := machines.Each(r.ctx, storage, volumes, "", func(e *transform.Entry, pv *corev1.PersistentVolume) error {
			r.checkHandle(handles, string(e.Key), pv)
			return cmp.Or(r.checkPlace(storage, string(e.Key), pv), r.checkVolume(storage, string(e.Key), pv))
		})
		if err != nil {
			return err
		}
		for _, it := range r.items {
			if it.key.Prefix != storage.Prefix || it.key.Resource.String() != claims {
				continue
			}
			claim, err := storage.Claim(r.ctx, it.key.Namespace, it.key.Name)
			if err != nil {
				return err
			}
			if claim == nil {
				continue // undecodable
			}
			pv, err := storage.Volume(r.ctx, claim.Spec.VolumeName)
			if err != nil {
				return err
			}
			if pv == nil || pv.Spec.ClaimRef == nil {
				continue // missing volumes are reported; a free one is bound again
			}
			if ref := pv.Spec.ClaimRef; ref.Namespace != claim.Namespace || ref.Name != claim.Name {
				r.view.Raise(string(it.at), codeVolumeHeld.Because(
					"PersistentVolume %s belongs to claim %s/%s", pv.Name, ref.Namespace, ref.Name))
			}
		}
	}
	return nil
}

// checkHandle reports two volumes with the same storage, if one of them is an item.
func (r *run) checkHandle(handles map[[2]string]string, key string, pv *corev1.PersistentVolume) {
	csi := pv.Spec.CSI
	if csi == nil || csi.VolumeHandle == "" {
		return
	}
	at := [2]string{csi.Driver, csi.VolumeHandle}
	first := handles[at]
	switch {
	case first == "":
		handles[at] = key
	case r.byKey[key] != nil:
		r.view.Raise(key, codeVolumeTwice.Because("volume %q of %s is also that of %s", csi.VolumeHandle,
			csi.Driver, first))
	case r.byKey[first] != nil:
		r.view.Raise(first, codeVolumeTwice.Because("volume %q of %s is also that of %s", csi.VolumeHandle,
			csi.Driver, key))
	}
}

// checkPlace reports the nodes that an imported local volume names and that are missing.
func (r *run) checkPlace(storage machines.Storage, key string, pv *corev1.PersistentVolume) error {
	if pv.Spec.NodeAffinity == nil || r.byKey[key] == nil {
		return nil
	}
	for _, node := range machines.NodesOf(pv.Spec.NodeAffinity.Required) {
		e, err := storage.Get(r.ctx, "nodes", "", node)
		if err != nil {
			return err
		}
		if e == nil {
			r.view.Raise(key, codeNodeMissing.Because(
				"its data is on Node %s, which is missing in B and in the archive", node).Decided(finding.Noted))
		}
	}
	return nil
}

// checkVolume checks the claim of a volume, if the volume or the claim is an item.
func (r *run) checkVolume(storage machines.Storage, key string, pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	if ref == nil || r.byKey[key] == nil && r.byKey[string(storage.Key(claims, ref.Namespace, ref.Name))] == nil {
		return nil
	}
	claim, err := storage.Claim(r.ctx, ref.Namespace, ref.Name)
	if err != nil {
		return err
	}
	gone, err := storage.Unclaimed(r.ctx, pv)
	if err != nil {
		return err
	}
	if gone && machines.Destroyed(pv) && r.byKey[key] != nil {
		r.view.Raise(key, objects.CodeVolumeFreed.Because(
			"its claim %s/%s with UID %s is missing in B and in the archive, and its reclaim policy is %s",
			ref.Namespace, ref.Name, ref.UID, pv.Spec.PersistentVolumeReclaimPolicy))
	}
	switch {
	case claim == nil:
	case ref.UID != "" && ref.UID != claim.UID:
		r.view.Raise(key, codeVolumeHeld.Because(
			"it belongs to a claim %s/%s with UID %s, and the claim of this name has UID %s", ref.Namespace, ref.Name,
			ref.UID, claim.UID))
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != pv.Name:
		r.view.Raise(key, codeVolumeHeld.Because("its claim %s/%s names PersistentVolume %s", ref.Namespace, ref.Name,
			claim.Spec.VolumeName))
	}
	return nil
}
