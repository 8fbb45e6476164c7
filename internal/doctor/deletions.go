package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// leaving keeps an object that is being deleted. Namespaces and definitions have their own codes.
func (d *doctor) leaving(o stored, p *place) {
	if p.name != "namespaces" && o.Resource != keys.DefinitionType() {
		d.kept[deleting] = append(d.kept[deleting], o)
	}
}

const deleting = "\x00deleting" // no resource has that name

// checkDeletions names the objects with whose deletion the restored cluster goes on, and volumes
// that it destroys.
func (d *doctor) checkDeletions() {
	for _, o := range d.kept[deleting] {
		meta, err := encoding.ReadMeta(o.entry.Value)
		if err != nil {
			continue
		}
		code, fate := codeDeleting, ""
		switch plain(o.Resource) {
		case "persistentvolumeclaims":
			code, fate = codeDeletingVolume, d.fateOfClaim(o)
		case "persistentvolumes":
			code, fate = codeDeletingVolume, d.fateOfVolume(o)
		default:
			fate = fateOf(o, &meta)
		}
		if d.err != nil {
			return
		}
		d.raise(o.entry.Key, code, "it is being deleted since %s; finalizers: %s; %s",
			meta.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"), list(meta.Finalizers), fate)
	}
	for _, prefix := range slices.Sorted(maps.Keys(d.whole)) {
		d.checkUnclaimed(prefix)
	}
}

// fateOfClaim says who holds a claim, and what goes with it.
func (d *doctor) fateOfClaim(o stored) string {
	claim, err := decodeAs[corev1.PersistentVolumeClaim](o.entry)
	if err != nil {
		return "it cannot be read"
	}
	storage := d.storage(o.Prefix)
	holders, err := storage.Holders(d.ctx, &claim)
	if d.failed(err) {
		return ""
	}
	volume, err := storage.Volume(d.ctx, claim.Spec.VolumeName)
	d.failed(err)
	held := "no Pod holds it, so that it goes at once"
	if len(holders) > 0 {
		held = "it goes with the last Pod that uses it: " + few(holders, 3, "")
	}
	switch {
	case volume == nil:
		return held
	case machines.Destroyed(volume):
		return fmt.Sprintf("%s, and with it the data of PersistentVolume %s, whose reclaim policy is %s",
			held, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy)
	}
	return fmt.Sprintf("%s; PersistentVolume %s keeps its data", held, volume.Name)
}

// fateOfVolume says what holds a PersistentVolume, and whether its data goes.
func (d *doctor) fateOfVolume(o stored) string {
	volume, err := decodeAs[corev1.PersistentVolume](o.entry)
	if err != nil {
		return "it cannot be read"
	}
	unclaimed, err := d.storage(o.Prefix).Unclaimed(d.ctx, &volume)
	d.failed(err)
	held := "no claim holds it, so that it goes at once"
	if ref := volume.Spec.ClaimRef; ref != nil && !unclaimed {
		held = fmt.Sprintf("it goes with its claim %s/%s", ref.Namespace, ref.Name)
	}
	if machines.Destroyed(&volume) {
		return fmt.Sprintf("%s, and its data with it: the reclaim policy is %s", held, volume.Spec.PersistentVolumeReclaimPolicy)
	}
	return held + "; its data stays"
}

// checkUnclaimed reports PersistentVolumes that are destroyed because their claims are gone.
func (d *doctor) checkUnclaimed(prefix string) {
	if d.unread[gvr.GroupResource{Resource: "persistentvolumeclaims"}] {
		return
	}
	for e, err := range d.reader.Live(d.ctx, keys.Kubernetes{Prefix: prefix}.Dir(gvr.GroupResource{Resource: "persistentvolumes"})) {
		if d.failed(err) {
			return
		}
		volume, err := native.As[corev1.PersistentVolume](e.ParseValue())
		if err != nil || volume.DeletionTimestamp != nil || !machines.Destroyed(&volume) {
			continue
		}
		if unclaimed, err := d.storage(prefix).Unclaimed(d.ctx, &volume); d.failed(err) || !unclaimed {
			continue
		}
		ref := volume.Spec.ClaimRef
		d.raise(e.Key, codeDeletingVolume, "its claim %s/%s is gone and its reclaim policy is %s: it goes, and its data with it",
			ref.Namespace, ref.Name, volume.Spec.PersistentVolumeReclaimPolicy)
	}
}

// fateOf says what a restored cluster does with an object that is being deleted.
func fateOf(o stored, meta *encoding.Meta) string {
	switch {
	case slices.Contains(meta.Finalizers, "foregroundDeletion"):
		return "the garbage collector deletes its dependents, then it"
	case slices.Contains(meta.Finalizers, "orphan"):
		return "the garbage collector removes it from its dependents, then deletes it"
	case slices.Contains(meta.Finalizers, "service.kubernetes.io/load-balancer-cleanup"):
		return "the cloud controller deletes its load balancer, then it"
	}
	switch plain(o.Resource) {
	case "pods":
		return podFate(o.entry)
	case "nodes":
		return "it goes, and its Pods with it, unless its kubelet registers it again"
	case "volumeattachments.storage.k8s.io":
		return "the attacher detaches the volume from the node, then it goes"
	}
	if len(meta.Finalizers) > 0 {
		return "it goes when the controllers of its finalizers have done their work, outside of the cluster too; for ever without them"
	}
	return "it goes with its next write"
}

func podFate(e *inspect.Entry) string {
	pod, err := decodeAs[corev1.Pod](e)
	if node := pod.Spec.NodeName; err == nil && node != "" {
		return "the kubelet of node " + strings.TrimSpace(node) + " ends it; without that Node the garbage collector of Pods does"
	}
	return "the garbage collector of Pods deletes it"
}
