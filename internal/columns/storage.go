package columns

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/internal/stream"
)

func persistentVolumeCells(o *corev1.PersistentVolume) []any {
	claim := ""
	if o.Spec.ClaimRef != nil {
		claim = o.Spec.ClaimRef.Namespace + "/" + o.Spec.ClaimRef.Name
	}
	capacity := o.Spec.Capacity[corev1.ResourceStorage]
	return []any{
		capacity.String(), accessModes(o.Spec.AccessModes), o.Spec.PersistentVolumeReclaimPolicy,
		volumePhase(o.Status.Phase, o.ObjectMeta), claim,
		className(&o.Spec.StorageClassName, o.ObjectMeta), orElse(o.Spec.VolumeAttributesClassName, unset),
		o.Status.Reason,
		orElse(o.Spec.VolumeMode, unset),
	}
}

func persistentVolumeClaimCells(o *corev1.PersistentVolumeClaim) []any {
	capacity, modes := "", ""
	if o.Spec.VolumeName != "" {
		storage := o.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = storage.String(), accessModes(o.Status.AccessModes)
	}
	return []any{
		volumePhase(o.Status.Phase, o.ObjectMeta), o.Spec.VolumeName, capacity, modes,
		className(o.Spec.StorageClassName, o.ObjectMeta),
		orElse(o.Spec.VolumeAttributesClassName, unset), orElse(o.Spec.VolumeMode, unset),
	}
}

func volumePhase[S ~string](phase S, meta metav1.ObjectMeta) S {
	if meta.DeletionTimestamp != nil {
		return "Terminating"
	}
	return cmp.Or(phase, "Pending") // the default of servers
}

func className(name *string, meta metav1.ObjectMeta) any {
	if named, has := meta.Annotations[corev1.BetaStorageClassAnnotation]; has {
		return named
	}
	return orElse(name, "")
}

// accessModes returns the short names without duplicates, the least sharing first.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	short := []string{"RWO", "ROX", "RWX", "RWOP"}
	for i, mode := range []corev1.PersistentVolumeAccessMode{
		corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
	} {
		if !slices.Contains(modes, mode) {
			short[i] = ""
		}
	}
	return joinSet(",", short...)
}

func storageClassCells(o *storagev1.StorageClass) []any {
	isDefault := func(annotation string) bool { return o.Annotations[annotation] == "true" }
	if isDefault("storageclass.kubernetes.io/is-default-class") ||
		isDefault("storageclass.beta.kubernetes.io/is-default-class") {
		o.Name += " (default)"
	}
	return []any{
		o.Provisioner, orElse(o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
		orElse(o.VolumeBindingMode, storagev1.VolumeBindingImmediate),
		orElse(o.AllowVolumeExpansion, false),
	}
}

func csiDriverCells(o *storagev1.CSIDriver) []any {
	audiences := stream.Mapped(o.Spec.TokenRequests, func(r storagev1.TokenRequest) string { return r.Audience })
	modes := stream.Mapped(o.Spec.VolumeLifecycleModes,
		func(m storagev1.VolumeLifecycleMode) string { return string(m) })
	return []any{
		orElse(o.Spec.AttachRequired, true), orElse(o.Spec.PodInfoOnMount, false),
		orElse(o.Spec.StorageCapacity, false),
		cmp.Or(strings.Join(audiences, ","), unset), orElse(o.Spec.RequiresRepublish, false),
		cmp.Or(strings.Join(modes, ","), none),
	}
}
