package transform

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/backends"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// The codes of [Freed].
var (
	CodeVolumeFreed = &finding.Code{
		Name: "volume-freed", Level: finding.Error, Allowed: finding.WentOn, Title: "a volume would be destroyed after the restore",
		Meaning: "The claim or the PersistentVolume is being deleted, and only what this run deletes held it: the last Pod that uses the claim, or the last " +
			"VolumeAttachment. The restored cluster would end the deletion within seconds, and the reclaim policy destroys the data.",
		Remedy: "To keep the data, first set the policy: " +
			"`etcdshift patch IN OUT pv/NAME --type merge -p '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'`. " +
			"Or keep the Pod: `--keep-node NODE`.",
		Allow: "The holder is deleted. After the restore the volume is destroyed.",
	}
	CodeFreed = WarningCode("deletion-freed", "a deletion that was held goes on after the restore",
		"The object is being deleted, or will be, and only what this run deletes held it. It goes after the restore; no data of a volume goes with it, "+
			"unless the volume was made for one Pod only.",
		"Nothing, if it may go. `etcdshift get IN TYPE/NAME --export` prints the object, to make it again.")
)

// FreedCodes are the codes of [Freed].
func FreedCodes() []*finding.Code { return []*finding.Code{CodeVolumeFreed, CodeFreed} }

// Freed finds the deletions of a file that what a run deletes held. Its zero value is ready.
type Freed struct {
	seen map[holding]bool // true for what a VolumeAttachment held
}

// holding is what a deleted object may have held.
type holding struct{ prefix, resource, namespace, name string }

// Deleted takes an object before it is deleted.
func (f *Freed) Deleted(e *Entry) {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return
	}
	note := func(resource, namespace, name string) {
		if f.seen == nil {
			f.seen = map[holding]bool{}
		}
		h := holding{key.Prefix, resource, namespace, name}
		f.seen[h] = f.seen[h] || key.Resource.Resource == "volumeattachments"
	}
	switch key.Resource {
	case schema.GroupResource{Resource: "pods"}:
		pod, _ := native.As[corev1.Pod](e.ParseValue()) // others report what does not decode
		for _, claim := range backends.ClaimsOf(&pod) {
			note("persistentvolumeclaims", key.Namespace, claim)
		}
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"}:
		attached, _ := native.As[storagev1.VolumeAttachment](e.ParseValue())
		if name := attached.Spec.Source.PersistentVolumeName; name != nil {
			note("persistentvolumes", "", *name)
		}
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		claim, _ := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
		note("persistentvolumes", "", claim.Spec.VolumeName)
	}
	if meta, err := encoding.ReadMeta(e.Value); err == nil && key.Namespace != "" && len(meta.Finalizers) > 0 {
		note("namespaces", "", key.Namespace)
	}
}

// Report reports what is held no more, once everything is staged.
func (f *Freed) Report(ctx context.Context, v *View) error {
	order := make([]holding, 0, len(f.seen))
	for h := range f.seen {
		order = append(order, h)
	}
	slices.SortFunc(order, func(a, b holding) int {
		return slices.Compare([]string{a.prefix, a.resource, a.namespace, a.name}, []string{b.prefix, b.resource, b.namespace, b.name})
	})
	for _, h := range order {
		check := f.namespace
		switch h.resource {
		case "persistentvolumeclaims":
			check = f.claim
		case "persistentvolumes":
			check = f.volume
		}
		key := keys.Key{Prefix: h.prefix, Resource: schema.GroupResource{Resource: h.resource}, Namespace: h.namespace, Name: h.name}
		found, err := check(ctx, v, h)
		if err != nil {
			return err
		}
		if found != nil {
			v.Raise(string(keys.Kubernetes{Prefix: h.prefix}.Format(key)), found)
		}
	}
	return nil
}

// claim is about a claim whose user is deleted.
func (f *Freed) claim(ctx context.Context, v *View, h holding) (*finding.Finding, error) {
	storage := backends.Storage{Source: v, Prefix: h.prefix}
	claim, err := storage.Claim(ctx, h.namespace, h.name)
	if claim == nil || err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOf(claim); claim.DeletionTimestamp == nil && owner != nil && owner.Kind == "Pod" {
		return CodeFreed.Because("it was made for Pod %s, which is deleted: the garbage collector deletes it, and its volume", owner.Name), nil
	}
	if claim.DeletionTimestamp == nil || !slices.Contains(claim.Finalizers, "kubernetes.io/pvc-protection") {
		return nil, nil
	}
	holders, err := storage.Holders(ctx, claim)
	if err != nil || len(holders) > 0 {
		return nil, err
	}
	volume, err := storage.Volume(ctx, claim.Spec.VolumeName)
	switch {
	case err != nil:
		return nil, err
	case volume != nil && backends.Destroyed(volume):
		return CodeVolumeFreed.Because("it is being deleted, and the last Pod that uses it is deleted: PersistentVolume %s goes, and its reclaim policy is %s",
			volume.Name, volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return CodeFreed.Because("the last Pod that uses it is deleted"), nil
}

// volume is about a PersistentVolume whose claim or VolumeAttachment is deleted.
func (f *Freed) volume(ctx context.Context, v *View, h holding) (*finding.Finding, error) {
	storage := backends.Storage{Source: v, Prefix: h.prefix}
	volume, err := storage.Volume(ctx, h.name)
	if volume == nil || err != nil {
		return nil, err
	}
	unclaimed, err := storage.Unclaimed(ctx, volume)
	if err != nil || !unclaimed {
		return nil, err
	}
	if volume.DeletionTimestamp == nil && !f.seen[h] { // "delete" reports what it was asked for
		return nil, nil
	}
	attached, err := storage.Attachments(ctx, h.name)
	switch {
	case err != nil || len(attached) > 0:
		return nil, err
	case backends.Destroyed(volume):
		return CodeVolumeFreed.Because("its claim is gone, nothing else holds it, and its reclaim policy is %s", volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return CodeFreed.Because("its claim is gone, and nothing else holds it"), nil
}

// namespace is about a namespace whose content with finalizers is deleted.
func (f *Freed) namespace(ctx context.Context, v *View, h holding) (*finding.Finding, error) {
	key := keys.Key{Prefix: h.prefix, Resource: schema.GroupResource{Resource: h.resource}, Name: h.name}
	e, err := v.Get(ctx, keys.Kubernetes{Prefix: h.prefix}.Format(key))
	if e == nil || err != nil {
		return nil, err
	}
	if meta, err := encoding.ReadMeta(e.Value); err != nil || meta.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return CodeFreed.Because("it is being deleted, and objects in it whose finalizers held it are deleted"), nil
}
