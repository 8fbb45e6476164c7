package columns

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func persistentVolumeRow(o *corev1.PersistentVolume, now time.Time) []any {
	phase := or(string(o.Status.Phase), "Pending") // as a server reads it where nothing is stored
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
		o.Name, capacity.String(), accessModes(o.Spec.AccessModes), string(o.Spec.PersistentVolumeReclaimPolicy), phase, claim, class,
		deref(o.Spec.VolumeAttributesClassName, unset), o.Status.Reason, age(o.CreationTimestamp, now), string(deref(o.Spec.VolumeMode, unset)),
	}
}

func persistentVolumeClaimRow(o *corev1.PersistentVolumeClaim, now time.Time) []any {
	phase := or(string(o.Status.Phase), "Pending") // as a server reads it where nothing is stored
	if o.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if o.Spec.VolumeName != "" {
		storage := o.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = storage.String(), accessModes(o.Status.AccessModes)
	}
	class := deref(o.Spec.StorageClassName, "")
	if named, has := o.Annotations[corev1.BetaStorageClassAnnotation]; has {
		class = named
	}
	return []any{
		o.Name, phase, o.Spec.VolumeName, capacity, modes, class, deref(o.Spec.VolumeAttributesClassName, unset),
		age(o.CreationTimestamp, now), string(deref(o.Spec.VolumeMode, unset)),
	}
}

// accessModes are their short names, each once, in the order of how much they allow.
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

func storageClassRow(o *storagev1.StorageClass, now time.Time) []any {
	name := o.Name
	isDefault := func(annotation string) bool { return o.Annotations[annotation] == "true" }
	if isDefault("storageclass.kubernetes.io/is-default-class") || isDefault("storageclass.beta.kubernetes.io/is-default-class") {
		name += " (default)"
	}
	expands := "false"
	if deref(o.AllowVolumeExpansion, false) {
		expands = "true"
	}
	return []any{
		name, o.Provisioner, string(deref(o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
		string(deref(o.VolumeBindingMode, storagev1.VolumeBindingImmediate)), expands, age(o.CreationTimestamp, now),
	}
}

func volumeAttachmentRow(o *storagev1.VolumeAttachment, now time.Time) []any {
	attached := "false"
	if o.Status.Attached {
		attached = "true"
	}
	return []any{o.Name, o.Spec.Attacher, deref(o.Spec.Source.PersistentVolumeName, ""), o.Spec.NodeName, attached, age(o.CreationTimestamp, now)}
}

func csiNodeRow(o *storagev1.CSINode, now time.Time) []any {
	return []any{o.Name, len(o.Spec.Drivers), age(o.CreationTimestamp, now)}
}

func csiDriverRow(o *storagev1.CSIDriver, now time.Time) []any {
	var audiences, modes []string
	for _, r := range o.Spec.TokenRequests {
		audiences = append(audiences, r.Audience)
	}
	for _, m := range o.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	lower := func(b *bool, instead bool) string { return strings.ToLower(yesNo(deref(b, instead))) }
	return []any{
		o.Name, lower(o.Spec.AttachRequired, true), lower(o.Spec.PodInfoOnMount, false), lower(o.Spec.StorageCapacity, false),
		or(strings.Join(audiences, ","), unset), lower(o.Spec.RequiresRepublish, false), or(strings.Join(modes, ","), none),
		age(o.CreationTimestamp, now),
	}
}

func volumeAttributesClassRow(o *storagev1.VolumeAttributesClass, now time.Time) []any {
	return []any{o.Name, o.DriverName, age(o.CreationTimestamp, now)}
}
