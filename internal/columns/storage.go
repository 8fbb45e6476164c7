package columns

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

func persistentVolumeRow(o *corev1.PersistentVolume) []any {
	phase := cmp.Or(string(o.Status.Phase), "Pending") // as a server reads it where nothing is stored
	if o.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	claim := ""
	if o.Spec.ClaimRef != nil {
		claim = o.Spec.ClaimRef.Namespace + "/" + o.Spec.ClaimRef.Name
	}
	class := o.Spec.StorageClassName
	if named, has := o.Annotations[corev1.BetaStorageClassAnnotation]; has {
		class = named
	}
	capacity := o.Spec.Capacity[corev1.ResourceStorage]
	return []any{
		capacity.String(), accessModes(o.Spec.AccessModes), string(o.Spec.PersistentVolumeReclaimPolicy), phase, claim, class,
		ptr.Deref(o.Spec.VolumeAttributesClassName, unset), o.Status.Reason, string(ptr.Deref(o.Spec.VolumeMode, unset)),
	}
}

func persistentVolumeClaimRow(o *corev1.PersistentVolumeClaim) []any {
	phase := cmp.Or(string(o.Status.Phase), "Pending") // as a server reads it where nothing is stored
	if o.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if o.Spec.VolumeName != "" {
		storage := o.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = storage.String(), accessModes(o.Status.AccessModes)
	}
	class := ptr.Deref(o.Spec.StorageClassName, "")
	if named, has := o.Annotations[corev1.BetaStorageClassAnnotation]; has {
		class = named
	}
	return []any{
		phase, o.Spec.VolumeName, capacity, modes, class, ptr.Deref(o.Spec.VolumeAttributesClassName, unset), string(ptr.Deref(o.Spec.VolumeMode, unset)),
	}
}

// accessModes returns the short names, each once, in a fixed order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	has := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, m := range modes {
		has[m] = true
	}
	var out []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"}} {
		if has[m.mode] {
			out = append(out, m.short)
		}
	}
	return strings.Join(out, ",")
}

func storageClassRow(o *storagev1.StorageClass) []any {
	name := o.Name
	isDefault := func(annotation string) bool { return o.Annotations[annotation] == "true" }
	if isDefault("storageclass.kubernetes.io/is-default-class") || isDefault("storageclass.beta.kubernetes.io/is-default-class") {
		name += " (default)"
	}
	return []any{
		name, o.Provisioner, string(ptr.Deref(o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
		string(ptr.Deref(o.VolumeBindingMode, storagev1.VolumeBindingImmediate)),
		strconv.FormatBool(ptr.Deref(o.AllowVolumeExpansion, false)),
	}
}

func volumeAttachmentRow(o *storagev1.VolumeAttachment) []any {
	return []any{o.Spec.Attacher, ptr.Deref(o.Spec.Source.PersistentVolumeName, ""), o.Spec.NodeName, strconv.FormatBool(o.Status.Attached)}
}

func csiDriverRow(o *storagev1.CSIDriver) []any {
	var audiences, modes []string
	for _, r := range o.Spec.TokenRequests {
		audiences = append(audiences, r.Audience)
	}
	for _, m := range o.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	lower := func(b *bool, instead bool) string { return strconv.FormatBool(ptr.Deref(b, instead)) }
	return []any{
		lower(o.Spec.AttachRequired, true), lower(o.Spec.PodInfoOnMount, false), lower(o.Spec.StorageCapacity, false),
		cmp.Or(strings.Join(audiences, ","), unset), lower(o.Spec.RequiresRepublish, false), cmp.Or(strings.Join(modes, ","), none),
	}
}
