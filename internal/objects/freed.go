package objects

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// The codes of [Freed].
var (
	CodeVolumeFreed = finding.Lookup("volume-freed")
	CodeFreed       = finding.Lookup("deletion-freed")
)

// FreedCodes are the codes of [Freed].
func FreedCodes() []*finding.Code { return []*finding.Code{CodeVolumeFreed, CodeFreed} }

// Freed finds the deletions of a file that go on because of a run. Its zero value is ready.
type Freed struct {
	seen  map[holding]held
	going map[string]bool  // keys of Pods and claims that go after the restore
	nodes map[holding]bool // that are deleted

	scaled []scaled // workloads that are changed
}

type (
	// holding is what a deleted object may have held.
	holding struct{ prefix, resource, namespace, name string }
	// held is how a holder ends, and what it was before.
	held struct {
		how    string           // what becomes of the Pod
		before *transform.Entry // the object itself, which is changed
		scaled string           // a StatefulSet that deletes the claim
		moved  string           // the claim of a volume, which names another volume now
	}
)

// Deleted takes an object before it is deleted.
func (f *Freed) Deleted(e *transform.Entry) {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return
	}
	f.freed(e, key, "is deleted")
	if key.Resource == (schema.GroupResource{Resource: "nodes"}) {
		if f.nodes == nil {
			f.nodes = map[holding]bool{}
		}
		f.nodes[holding{prefix: key.Prefix, name: key.Name}] = true
	}
	if meta, err := encoding.ReadMeta(e.Value); err == nil && key.Namespace != "" && len(meta.Finalizers) > 0 {
		f.note(holding{key.Prefix, "namespaces", "", key.Namespace}, held{})
	}
}

// Goes takes an object that stays in the file, and that a garbage collector deletes after the
// restore because of the run.
func (f *Freed) Goes(e *transform.Entry) { f.goes(e, "goes with its owner") }

func (f *Freed) goes(e *transform.Entry, how string) {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return
	}
	if f.going == nil {
		f.going = map[string]bool{}
	}
	f.going[string(e.Key)] = true
	f.freed(e, key, how)
}

// Changed takes an object as it was before it is changed, and its content afterwards.
func (f *Freed) Changed(e *transform.Entry, content map[string]any) {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return
	}
	switch key.Resource {
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		was, _ := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
		is, _, _ := unstructured.NestedString(content, "spec", "volumeName")
		if name := was.Spec.VolumeName; name != "" && is != "" && is != name {
			f.note(holding{key.Prefix, "persistentvolumes", "", name}, held{moved: key.Namespace + "/" + key.Name})
		}
		fallthrough
	case schema.GroupResource{Resource: "persistentvolumes"}:
		f.note(holding{key.Prefix, key.Resource.Resource, key.Namespace, key.Name}, held{before: e})
	default:
		f.freed(e, key, "no longer holds it")
		f.scale(e, key, content)
	}
}

// Stranded takes the Pods on deleted Nodes, which the Pod garbage collector deletes in any phase,
// and returns their UIDs.
func (f *Freed) Stranded(ctx context.Context, v *transform.View) (uids []string, err error) {
	prefixes := map[string]bool{}
	for node := range f.nodes {
		prefixes[node.prefix] = true
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		for e, err := range v.Live(ctx, keys.Kubernetes{Prefix: prefix}.Dir(schema.GroupResource{Resource: "pods"})) {
			if err != nil {
				return nil, err
			}
			pod, err := native.As[corev1.Pod](e.ParseValue()) // others report what does not decode
			if err == nil && f.nodes[holding{prefix: prefix, name: pod.Spec.NodeName}] {
				f.goes(e, "goes with its Node")
				uids = append(uids, string(pod.UID))
			}
		}
	}
	return uids, nil
}

func (f *Freed) note(h holding, by held) {
	if f.seen == nil {
		f.seen = map[holding]held{}
	}
	old := f.seen[h]
	f.seen[h] = held{cmp.Or(by.how, old.how), cmp.Or(by.before, old.before), cmp.Or(by.scaled, old.scaled), cmp.Or(by.moved, old.moved)}
}

// freed notes what an object may have held.
func (f *Freed) freed(e *transform.Entry, key keys.Key, how string) {
	switch key.Resource {
	case schema.GroupResource{Resource: "pods"}:
		pod, _ := native.As[corev1.Pod](e.ParseValue()) // others report what does not decode
		for _, claim := range machines.ClaimsOf(&pod) {
			f.note(holding{key.Prefix, "persistentvolumeclaims", key.Namespace, claim}, held{how: how})
		}
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"}:
		attached, _ := native.As[storagev1.VolumeAttachment](e.ParseValue())
		if name := attached.Spec.Source.PersistentVolumeName; name != nil {
			f.note(holding{key.Prefix, "persistentvolumes", "", *name}, held{})
		}
	}
}

// Report reports what is held no more, once everything is staged.
func (f *Freed) Report(ctx context.Context, v *transform.View) error {
	if err := f.follow(ctx, v); err != nil {
		return err
	}
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

// claim is about a claim that is changed, or whose user goes.
func (f *Freed) claim(ctx context.Context, v *transform.View, h holding) (*finding.Finding, error) {
	storage := machines.Storage{Source: v, Prefix: h.prefix}
	claim, err := storage.Claim(ctx, h.namespace, h.name)
	if claim == nil || err != nil {
		return nil, err
	}
	by := f.seen[h]
	switch {
	case by.scaled != "":
		return f.ended(ctx, storage, claim, fmt.Sprintf("StatefulSet %s deletes it, as persistentVolumeClaimRetentionPolicy says", by.scaled))
	case claim.DeletionTimestamp == nil:
		return f.made(ctx, v, h, metav1.GetControllerOf(claim))
	}
	how := "the last Pod that uses it " + by.how
	if by.how == "" {
		was, err := native.As[corev1.PersistentVolumeClaim](by.before.ParseValue())
		if err != nil || was.DeletionTimestamp != nil && len(was.Finalizers) <= len(claim.Finalizers) {
			return nil, nil
		}
		how = "nothing holds it"
		if len(claim.Finalizers) == 0 {
			how = "without finalizers its next update ends it"
		}
	}
	switch held, err := f.held(ctx, storage, claim); {
	case err != nil:
		return nil, err
	case held && (by.before == nil || len(claim.Finalizers) > 0): // without finalizers the next update ends it
		return nil, nil
	}
	return f.ended(ctx, storage, claim, "it is being deleted, and "+how)
}

// ended is about a claim that goes.
func (f *Freed) ended(ctx context.Context, storage machines.Storage, claim *corev1.PersistentVolumeClaim, why string) (*finding.Finding, error) {
	volume, err := storage.Volume(ctx, claim.Spec.VolumeName)
	switch {
	case err != nil:
		return nil, err
	case volume != nil && machines.Destroyed(volume):
		return CodeVolumeFreed.Because("%s: PersistentVolume %s goes, and its reclaim policy is %s",
			why, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return CodeFreed.Because("%s", why), nil
}

// held tells whether more than what goes holds a claim.
func (f *Freed) held(ctx context.Context, storage machines.Storage, claim *corev1.PersistentVolumeClaim) (bool, error) {
	holders, err := storage.Holders(ctx, claim)
	holders = slices.DeleteFunc(holders, func(key string) bool { return f.going[key] })
	return len(holders) > 0 || !slices.Contains(claim.Finalizers, "kubernetes.io/pvc-protection"), err
}

// made is about a claim that was made for a Pod.
func (f *Freed) made(ctx context.Context, v *transform.View, h holding, owner *metav1.OwnerReference) (*finding.Finding, error) {
	if owner == nil || owner.Kind != "Pod" {
		return nil, nil
	}
	pod := keys.Key{Prefix: h.prefix, Resource: schema.GroupResource{Resource: "pods"}, Namespace: h.namespace, Name: owner.Name}
	key := keys.Kubernetes{Prefix: h.prefix}.Format(pod)
	e, err := v.Get(ctx, key)
	if err != nil || e != nil && !f.going[string(key)] {
		return nil, err
	}
	return CodeFreed.Because("it was made for Pod %s, which %s: the garbage collector deletes it, and its volume", owner.Name, f.seen[h].how), nil
}

// volume is about a PersistentVolume that is changed, or whose VolumeAttachment is deleted.
func (f *Freed) volume(ctx context.Context, v *transform.View, h holding) (*finding.Finding, error) {
	storage := machines.Storage{Source: v, Prefix: h.prefix}
	volume, err := storage.Volume(ctx, h.name)
	if volume == nil || err != nil {
		return nil, err
	}
	unclaimed, err := storage.Unclaimed(ctx, volume)
	ref, claim := volume.Spec.ClaimRef, f.seen[h].moved
	switch {
	case err != nil:
		return nil, err
	case !unclaimed && ref != nil && ref.Namespace+"/"+ref.Name == claim && volume.Annotations["pv.kubernetes.io/provisioned-by"] != "" &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return CodeVolumeFreed.Because("it was made for claim %s, which names another volume now: the controller deletes it", claim), nil
	case !unclaimed:
		return nil, nil
	}
	if e := f.seen[h].before; e != nil {
		was, err := native.As[corev1.PersistentVolume](e.ParseValue())
		if err != nil || !machines.Destroyed(volume) {
			return nil, nil
		}
		if before, err := storage.Unclaimed(ctx, &was); err != nil || before && machines.Destroyed(&was) {
			return nil, err
		}
	}
	attached, err := storage.Attachments(ctx, h.name)
	switch {
	case err != nil || len(attached) > 0:
		return nil, err
	case machines.Destroyed(volume):
		return CodeVolumeFreed.Because("its claim is gone, nothing else holds it, and its reclaim policy is %s", volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return CodeFreed.Because("its claim is gone, and nothing else holds it"), nil
}

// namespace is about a namespace whose content with finalizers is deleted.
func (f *Freed) namespace(ctx context.Context, v *transform.View, h holding) (*finding.Finding, error) {
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
