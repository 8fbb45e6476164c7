package machines

import (
	"context"
	"iter"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// Source provides the objects of a snapshot, such as an inspect.Reader or a transform.View.
type Source interface {
	Get(ctx context.Context, key []byte) (*inspect.Entry, error)
	Live(ctx context.Context, prefix []byte) iter.Seq2[*inspect.Entry, error]
}

// Storage holds the objects below one storage prefix of a Source. Resources are named as for
// people: "pods", "ipaddresses.networking.k8s.io".
type Storage struct {
	Source Source
	Prefix string
}

// Key returns the key of an object.
func (s Storage) Key(resource, namespace, name string) []byte {
	key := keys.Key{Prefix: s.Prefix, Resource: schema.ParseGroupResource(resource), Namespace: namespace, Name: name}
	return keys.Kubernetes{Prefix: s.Prefix}.Format(key)
}

// Get returns an object, nil for none.
func (s Storage) Get(ctx context.Context, resource, namespace, name string) (*inspect.Entry, error) {
	return s.Source.Get(ctx, s.Key(resource, namespace, name))
}

// Dir returns the prefix of the keys of a resource in a namespace, "" for all.
func (s Storage) Dir(resource, namespace string) []byte {
	dir := keys.Kubernetes{Prefix: s.Prefix}.Dir(schema.ParseGroupResource(resource))
	if namespace != "" {
		dir = append(dir, namespace+"/"...)
	}
	return dir
}

// Live yields the objects of a resource in a namespace, "" for all.
func (s Storage) Live(ctx context.Context, resource, namespace string) iter.Seq2[*inspect.Entry, error] {
	return s.Source.Live(ctx, s.Dir(resource, namespace))
}

// Each calls fn with the objects of a resource in a namespace, "" for all, that decode as T. The
// pass over all records reports the others.
func Each[T any](ctx context.Context, s Storage, resource, namespace string, fn func(*inspect.Entry, *T) error) error {
	return stream.Each(s.Live(ctx, resource, namespace), func(e *inspect.Entry) error {
		if o, err := native.As[T](e.ParseValue()); err == nil {
			return fn(e, &o)
		}
		return nil
	})
}

// read returns an object, nil if it does not exist or is undecodable.
func read[T any](ctx context.Context, s Storage, resource, namespace, name string) (*T, error) {
	if name == "" {
		return nil, nil
	}
	e, err := s.Get(ctx, resource, namespace, name)
	if e == nil || err != nil {
		return nil, err
	}
	out, err := native.As[T](e.ParseValue())
	if err != nil {
		return nil, nil
	}
	return &out, nil
}

// Claim returns a claim, nil if it does not exist or is unreadable.
func (s Storage) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return read[corev1.PersistentVolumeClaim](ctx, s, "persistentvolumeclaims", namespace, name)
}

// Volume returns a PersistentVolume, nil if it does not exist or is unreadable.
func (s Storage) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return read[corev1.PersistentVolume](ctx, s, "persistentvolumes", "", name)
}

// ClaimsOf returns the names of the claims of a Pod on a node: named by its volumes, or created for
// its ephemeral volumes.
func ClaimsOf(pod *corev1.Pod) (names []string) {
	for _, v := range pod.Spec.Volumes {
		switch {
		case pod.Spec.NodeName == "": // no kubelet starts such a Pod with a claim in deletion
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

// holds reports whether a Pod keeps a claim, like pkg/controller/volume/pvcprotection of
// kube-controller-manager: in any phase, as long as the Pod exists.
func holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	ended := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil &&
		*pod.DeletionGracePeriodSeconds == 0
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

// Holders returns the keys of the Pods that block the deletion of a claim.
func (s Storage) Holders(ctx context.Context, claim *corev1.PersistentVolumeClaim) (holders []string, err error) {
	err = Each(ctx, s, "pods", claim.Namespace, func(e *inspect.Entry, pod *corev1.Pod) error {
		if holds(pod, claim) {
			holders = append(holders, string(e.Key))
		}
		return nil
	})
	return holders, err
}

// Attachments returns the nodes to which VolumeAttachments attach a volume. CSI provisioners
// destroy no attached volume.
func (s Storage) Attachments(ctx context.Context, volume string) (nodes []string, err error) {
	const attachments = "volumeattachments.storage.k8s.io"
	err = Each(ctx, s, attachments, "", func(_ *inspect.Entry, a *storagev1.VolumeAttachment) error {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && *name == volume {
			nodes = append(nodes, a.Spec.NodeName)
		}
		return nil
	})
	return nodes, err
}

// Unclaimed reports whether the claim of a volume is gone. Then the reclaim policy applies.
func (s Storage) Unclaimed(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" { // no claim was bound yet
		return false, nil
	}
	e, err := s.Get(ctx, "persistentvolumeclaims", ref.Namespace, ref.Name)
	if e == nil || err != nil {
		return err == nil, err
	}
	claim, err := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
	return err == nil && claim.UID != ref.UID, nil
}

// Destroyed reports whether the data of a volume is destroyed after the deletion of its claim.
func Destroyed(v *corev1.PersistentVolume) bool {
	p := v.Spec.PersistentVolumeReclaimPolicy
	return p == corev1.PersistentVolumeReclaimDelete || p == corev1.PersistentVolumeReclaimRecycle
}
