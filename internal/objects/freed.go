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

// FreedCodes returns the codes of [Freed].
func FreedCodes() []*finding.Code { return []*finding.Code{CodeVolumeFreed, CodeFreed} }

// Freed finds pending deletions of a snapshot that complete because of a run.
type Freed struct {
	view   *transform.View
	seen   map[holding]held
	going  map[string]bool  // keys of Pods and claims to be deleted after the restore
	nodes  map[holding]bool // deleted Nodes
	scaled []scaled         // changed workloads
}

// NewFreed returns a Freed for a run.
func NewFreed(v *transform.View) *Freed {
	return &Freed{view: v, seen: map[holding]held{}, going: map[string]bool{}, nodes: map[holding]bool{}}
}

type (
	// holding is an object in deletion that another object may block.
	holding struct{ prefix, resource, namespace, name string }
	// held describes the events that may end the blocking.
	held struct {
		how    string           // the end of the Pod that used the claim, such as "is deleted"
		before *transform.Entry // the claim or volume before its own change
		scaled string           // the StatefulSet that deletes the claim
		moved  string           // the claim that named the volume and now names another volume
	}
)

const (
	pods, nodes, claims, volumes = "pods", "nodes", "persistentvolumeclaims", "persistentvolumes"
	attachments, replicaSets     = "volumeattachments.storage.k8s.io", "replicasets.apps"
)

// readable returns the parsed key of an object with a decrypted value.
func readable(e *transform.Entry) (keys.Key, bool) {
	key, err := e.ParseKey()
	return key, err == nil && e.Undecryptable == nil
}

// Deleted records an object before its deletion.
func (f *Freed) Deleted(e *transform.Entry) {
	key, is := readable(e)
	if !is {
		return
	}
	f.unblock(e, key, "is deleted")
	if key.Resource.String() == nodes {
		f.nodes[holding{prefix: key.Prefix, name: key.Name}] = true
	}
	if meta, err := e.Meta(); err == nil && key.Namespace != "" && len(meta.Finalizers) > 0 {
		f.note(holding{key.Prefix, "namespaces", "", key.Namespace}, held{})
	}
}

// Goes records an object that stays in the file, but is garbage collected after the restore because
// of the run.
func (f *Freed) Goes(e *transform.Entry) { f.goes(e, "is deleted with its owner") }

func (f *Freed) goes(e *transform.Entry, how string) {
	if key, is := readable(e); is {
		f.going[string(e.Key)] = true
		f.unblock(e, key, how)
	}
}

// Changed records an object before its change, and the new content.
func (f *Freed) Changed(e *transform.Entry, content map[string]any) {
	key, is := readable(e)
	if !is {
		return
	}
	switch resource := key.Resource.String(); resource {
	case claims:
		was, _ := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
		is, _, _ := unstructured.NestedString(content, "spec", "volumeName")
		if name := was.Spec.VolumeName; name != "" && is != "" && is != name {
			f.note(holding{key.Prefix, volumes, "", name}, held{moved: key.Namespace + "/" + key.Name})
		}
		fallthrough
	case volumes:
		f.note(holding{key.Prefix, resource, key.Namespace, key.Name}, held{before: e})
	default:
		f.unblock(e, key, "no longer holds it")
		f.scale(e, key, content)
	}
}

// storage returns the objects below a storage prefix after the run.
func (f *Freed) storage(prefix string) machines.Storage {
	return machines.Storage{Source: f.view, Prefix: prefix}
}

// Stranded adds the Pods on deleted Nodes, which the Pod garbage collector deletes in any phase,
// and returns their UIDs.
func (f *Freed) Stranded(ctx context.Context) (uids []string, err error) {
	prefixes := map[string]bool{}
	for node := range f.nodes {
		prefixes[node.prefix] = true
	}
	for _, prefix := range slices.Sorted(maps.Keys(prefixes)) {
		err := machines.Each(ctx, f.storage(prefix), pods, "", func(e *transform.Entry, pod *corev1.Pod) error {
			if f.nodes[holding{prefix: prefix, name: pod.Spec.NodeName}] {
				f.goes(e, "is deleted with its Node")
				uids = append(uids, string(pod.UID))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return uids, nil
}

func (f *Freed) note(h holding, by held) {
	old := f.seen[h]
	f.seen[h] = held{
		cmp.Or(by.how, old.how), cmp.Or(by.before, old.before), cmp.Or(by.scaled, old.scaled),
		cmp.Or(by.moved, old.moved),
	}
}

// unblock records objects possibly blocked by an object.
func (f *Freed) unblock(e *transform.Entry, key keys.Key, how string) {
	switch key.Resource.String() {
	case pods:
		pod, _ := native.As[corev1.Pod](e.ParseValue()) // undecodable values are reported elsewhere
		for _, claim := range machines.ClaimsOf(&pod) {
			f.note(holding{key.Prefix, claims, key.Namespace, claim}, held{how: how})
		}
	case attachments:
		attached, _ := native.As[storagev1.VolumeAttachment](e.ParseValue())
		if name := attached.Spec.Source.PersistentVolumeName; name != nil {
			f.note(holding{key.Prefix, volumes, "", *name}, held{})
		}
	}
}

// Report reports the unblocked deletions, after everything is staged.
func (f *Freed) Report(ctx context.Context) error {
	for _, s := range f.scaled {
		if err := f.follow(ctx, s); err != nil {
			return err
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(f.seen), func(a, b holding) int {
		return slices.Compare([]string{a.prefix, a.resource, a.namespace, a.name},
			[]string{b.prefix, b.resource, b.namespace, b.name})
	}) {
		check := f.namespace
		switch h.resource {
		case claims:
			check = f.claim
		case volumes:
			check = f.volume
		}
		storage := f.storage(h.prefix)
		found, err := check(ctx, storage, h)
		if err != nil {
			return err
		}
		if found != nil {
			f.view.Raise(string(storage.Key(h.resource, h.namespace, h.name)), found)
		}
	}
	return nil
}

// claim checks a changed claim, or a claim of a deleted Pod.
func (f *Freed) claim(ctx context.Context, storage machines.Storage, h holding) (*finding.Finding, error) {
	claim, err := storage.Claim(ctx, h.namespace, h.name)
	if claim == nil || err != nil {
		return nil, err
	}
	by := f.seen[h]
	switch {
	case by.scaled != "":
		why := fmt.Sprintf("StatefulSet %s deletes it, as persistentVolumeClaimRetentionPolicy says", by.scaled)
		return ended(ctx, storage, claim, why)
	case claim.DeletionTimestamp == nil:
		return f.podClaim(ctx, storage, h, metav1.GetControllerOf(claim))
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
	holders, err := storage.Holders(ctx, claim)
	if err != nil {
		return nil, err
	}
	holders = slices.DeleteFunc(holders, func(key string) bool { return f.going[key] })
	held := len(holders) > 0 || !slices.Contains(claim.Finalizers, "kubernetes.io/pvc-protection")
	if held && (by.before == nil || len(claim.Finalizers) > 0) { // without finalizers the next update ends it
		return nil, nil
	}
	return ended(ctx, storage, claim, "it is being deleted, and "+how)
}

// ended returns the finding for a claim to be deleted.
func ended(
	ctx context.Context, storage machines.Storage, claim *corev1.PersistentVolumeClaim, why string,
) (*finding.Finding, error) {
	volume, err := storage.Volume(ctx, claim.Spec.VolumeName)
	if err != nil || volume == nil || !machines.Destroyed(volume) {
		return CodeFreed.Because("%s", why), err
	}
	return CodeVolumeFreed.Because("%s: PersistentVolume %s is deleted, and its reclaim policy is %s",
		why, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy), nil
}

// podClaim checks a claim created for a Pod.
func (f *Freed) podClaim(
	ctx context.Context, storage machines.Storage, h holding, owner *metav1.OwnerReference,
) (*finding.Finding, error) {
	if owner == nil || owner.Kind != "Pod" {
		return nil, nil
	}
	e, err := storage.Get(ctx, pods, h.namespace, owner.Name)
	if err != nil || e != nil && !f.going[string(e.Key)] {
		return nil, err
	}
	return CodeFreed.Because("it was made for Pod %s, which %s: the garbage collector deletes it, and its volume",
		owner.Name, f.seen[h].how), nil
}

// volume checks a PersistentVolume that is changed or loses a VolumeAttachment.
func (f *Freed) volume(ctx context.Context, storage machines.Storage, h holding) (*finding.Finding, error) {
	volume, err := storage.Volume(ctx, h.name)
	if volume == nil || err != nil {
		return nil, err
	}
	unclaimed, err := storage.Unclaimed(ctx, volume)
	ref, claim := volume.Spec.ClaimRef, f.seen[h].moved
	switch {
	case err != nil:
		return nil, err
	case !unclaimed && ref != nil && ref.Namespace+"/"+ref.Name == claim &&
		volume.Annotations["pv.kubernetes.io/provisioned-by"] != "" &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return CodeVolumeFreed.Because("it was made for claim %s, which names another volume now: the "+
			"controller deletes it", claim), nil
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
		return CodeVolumeFreed.Because("its claim is gone, nothing else holds it, and its reclaim policy is %s",
			volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return CodeFreed.Because("its claim is gone, and nothing else holds it"), nil
}

// namespace checks a namespace after the deletion of content with finalizers.
func (f *Freed) namespace(ctx context.Context, storage machines.Storage, h holding) (*finding.Finding, error) {
	e, err := storage.Get(ctx, h.resource, "", h.name)
	if e == nil || err != nil {
		return nil, err
	}
	if meta, err := encoding.ReadMeta(e.Value); err != nil || meta.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return CodeFreed.Because("it is being deleted, and this run deletes objects in it whose finalizers delayed " +
		"that"), nil
}
