package machines

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// ClaimsOf returns the names of the claims that a Pod on a node names: volumes of their own, and
// those that were made for the Pod.
func ClaimsOf(pod *corev1.Pod) (names []string) {
	for _, v := range pod.Spec.Volumes {
		switch {
		case pod.Spec.NodeName == "": // no kubelet starts such a Pod with a claim that is being deleted
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

// holds tells whether a Pod keeps a claim, as pkg/controller/volume/pvcprotection
// of kube-controller-manager does: in any phase, as long as the Pod is there.
func holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	ended := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	for _, v := range pod.Spec.Volumes {
		switch {
		case pod.Spec.NodeName == "":
		case v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name,
			v.Ephemeral != nil && !ended && pod.Name+"-"+v.Name == claim.Name && metav1.IsControlledBy(claim, pod):
			return true
		}
	}
	return false
}

// Holders returns the keys of the Pods that keep a claim from being deleted.
func (s Storage) Holders(ctx context.Context, claim *corev1.PersistentVolumeClaim) (holders []string, err error) {
	dir := append(keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.GroupResource{Resource: "pods"}), claim.Namespace+"/"...)
	for e, err := range s.Source.Live(ctx, dir) {
		if err != nil {
			return nil, err
		}
		if pod, err := native.As[corev1.Pod](e.ParseValue()); err == nil && holds(&pod, claim) {
			holders = append(holders, string(e.Key))
		}
	}
	return holders, nil
}

// Claim returns a claim, nil if there is none or it cannot be read.
func (s Storage) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return read[corev1.PersistentVolumeClaim](ctx, s, "persistentvolumeclaims", namespace, name)
}

// Volume returns a PersistentVolume, nil if there is none or it cannot be read.
func (s Storage) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return read[corev1.PersistentVolume](ctx, s, "persistentvolumes", "", name)
}

func read[T any](ctx context.Context, s Storage, resource, namespace, name string) (*T, error) {
	if name == "" {
		return nil, nil
	}
	e, err := s.get(ctx, resource, namespace, name)
	if e == nil || err != nil {
		return nil, err
	}
	out, err := native.As[T](e.ParseValue())
	if err != nil {
		return nil, nil // others report what does not decode
	}
	return &out, nil
}

// Attachments returns the nodes that VolumeAttachments attach a volume to. Provisioners of CSI
// destroy no volume that has one.
func (s Storage) Attachments(ctx context.Context, volume string) (nodes []string, err error) {
	dir := keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"})
	for e, err := range s.Source.Live(ctx, dir) {
		if err != nil {
			return nil, err
		}
		a, err := native.As[storagev1.VolumeAttachment](e.ParseValue())
		if name := a.Spec.Source.PersistentVolumeName; err == nil && name != nil && *name == volume {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	return nodes, nil
}

// Unclaimed tells whether the claim of a volume is gone, after which its reclaim policy applies.
func (s Storage) Unclaimed(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" { // no claim was bound yet
		return false, nil
	}
	e, err := s.get(ctx, "persistentvolumeclaims", ref.Namespace, ref.Name)
	if e == nil || err != nil {
		return err == nil, err
	}
	claim, err := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
	return err == nil && claim.UID != ref.UID, nil
}

// Destroyed tells whether the data of a volume goes when its claim does.
func Destroyed(v *corev1.PersistentVolume) bool {
	p := v.Spec.PersistentVolumeReclaimPolicy
	return p == corev1.PersistentVolumeReclaimDelete || p == corev1.PersistentVolumeReclaimRecycle
}
