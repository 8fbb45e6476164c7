package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
)

// Codes about deletions and namespaces.
var (
	codeNamespaceGone        = finding.Lookup("namespace-gone")
	codeNamespaceTerminating = finding.Lookup("namespace-terminating").As(finding.Warning, "")
	codeDeletingVolume       = finding.Lookup("deleting-volume")
	codeDeleting             = finding.Lookup("deleting")
)

// keepTerminating remembers a terminating object. Namespaces and definitions have their own codes.
func (d *index) keepTerminating(o stored, p *place) {
	if p.name != "namespaces" && o.Resource != keys.DefinitionType() {
		d.kept[deleting] = append(d.kept[deleting], o)
	}
}

const deleting = "\x00deleting" // not a valid resource name

// checkDeletions reports deletions that continue in the restored cluster, and volumes destroyed by
// them.
func checkDeletions(d *doctor) error {
	for _, o := range d.kept[deleting] {
		meta, err := encoding.ReadMeta(o.entry.Value)
		if err != nil {
			continue
		}
		code, fate := codeDeletingVolume, ""
		switch plain(o.Resource) {
		case "persistentvolumeclaims":
			fate, err = fateOfClaim(d, o)
		case "persistentvolumes":
			fate, err = fateOfVolume(d, o)
		default:
			code, fate = codeDeleting, fateOf(o, &meta)
		}
		if err != nil {
			return err
		}
		d.raise(o.entry.Key, code, "it is being deleted since %s; finalizers: %s; %s",
			meta.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"), list(meta.Finalizers), fate)
	}
	for _, prefix := range slices.Sorted(maps.Keys(d.whole)) {
		if err := checkUnclaimed(d, prefix); err != nil {
			return err
		}
	}
	return nil
}

// fateOfClaim says who holds a claim, and what its deletion destroys.
func fateOfClaim(d *doctor, o stored) (string, error) {
	claim, err := decodeAs[corev1.PersistentVolumeClaim](o.entry)
	if err != nil {
		return "it cannot be read", nil
	}
	storage := d.storage(o.Prefix)
	holders, err := storage.Holders(d.ctx, &claim)
	if err != nil {
		return "", err
	}
	volume, err := storage.Volume(d.ctx, claim.Spec.VolumeName)
	held := "no Pod uses it, so it is deleted at once"
	switch {
	case len(holders) > 0:
		held = "it is deleted with the last Pod that uses it: " + few(holders, 3, "")
	case d.unread["pods"]:
		held = "it is deleted with the last Pod that uses it, which may be an unreadable one"
	}
	switch {
	case volume == nil:
		return held, err
	case machines.Destroyed(volume):
		return fmt.Sprintf("%s, and so is the data of PersistentVolume %s: the reclaim policy is %s",
			held, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy), nil
	}
	return fmt.Sprintf("%s; PersistentVolume %s keeps its data", held, volume.Name), nil
}

// fateOfVolume names the claim of a terminating PersistentVolume, and the fate of the data.
func fateOfVolume(d *doctor, o stored) (string, error) {
	volume, err := decodeAs[corev1.PersistentVolume](o.entry)
	if err != nil {
		return "it cannot be read", nil
	}
	unclaimed, err := d.storage(o.Prefix).Unclaimed(d.ctx, &volume)
	held := "no claim uses it, so it is deleted at once"
	if ref := volume.Spec.ClaimRef; ref != nil && !unclaimed {
		held = fmt.Sprintf("it is deleted with its claim %s/%s", ref.Namespace, ref.Name)
	}
	if machines.Destroyed(&volume) {
		return fmt.Sprintf("%s, and so is its data: the reclaim policy is %s", held,
			volume.Spec.PersistentVolumeReclaimPolicy), err
	}
	return held + "; its data stays", err
}

// checkUnclaimed reports PersistentVolumes destroyed because their claims are gone.
func checkUnclaimed(d *doctor, prefix string) error {
	storage := d.storage(prefix)
	return machines.Each(d.ctx, storage, "persistentvolumes", "",
		func(e *inspect.Entry, volume *corev1.PersistentVolume) error {
			if volume.DeletionTimestamp != nil || !machines.Destroyed(volume) {
				return nil
			}
			unclaimed, err := storage.Unclaimed(d.ctx, volume)
			if unclaimed && err == nil {
				ref := volume.Spec.ClaimRef
				d.raise(e.Key, codeDeletingVolume, "its claim %s/%s is gone and its reclaim policy is %s: "+
					"it is deleted with its data",
					ref.Namespace, ref.Name, volume.Spec.PersistentVolumeReclaimPolicy)
			}
			return err
		})
}

// fateOf describes the action of a restored cluster on a terminating object.
func fateOf(o stored, meta *encoding.Meta) string {
	switch {
	case slices.Contains(meta.Finalizers, "foregroundDeletion"):
		return "the garbage collector deletes its dependents, then the object"
	case slices.Contains(meta.Finalizers, "orphan"):
		return "the garbage collector removes the owner references to it, then deletes it"
	case slices.Contains(meta.Finalizers, "service.kubernetes.io/load-balancer-cleanup"):
		return "the cloud controller deletes its load balancer, then the Service"
	}
	switch plain(o.Resource) {
	case "pods":
		return podFate(o.entry)
	case "nodes":
		return "it is deleted with its Pods, unless its kubelet registers it again"
	case "volumeattachments.storage.k8s.io":
		return "the attacher detaches the volume from the node, then the attachment is deleted"
	}
	if len(meta.Finalizers) > 0 {
		return "it is deleted when the controllers of its finalizers have finished, also with work outside of the " +
			"cluster; without these controllers it stays"
	}
	return "its next write deletes it"
}

func podFate(e *inspect.Entry) string {
	pod, err := decodeAs[corev1.Pod](e)
	if node := pod.Spec.NodeName; err == nil && node != "" {
		return "the kubelet of node " + strings.TrimSpace(node) +
			" ends it; without that Node the garbage collector of Pods does"
	}
	return "the garbage collector of Pods deletes it"
}

// checkNamespacesThere reports objects of missing namespaces.
func checkNamespacesThere(d *doctor) error {
	for at, contents := range d.contents.all() {
		_, there := d.namespaces[at]
		if there || slices.Contains(ownNamespaces(), at.name) || !d.whole[at.prefix] ||
			d.unread["namespaces"] {
			continue
		}
		d.raiseMany(contents.total, codeNamespaceGone, "object", "%s of namespace %s, which is not there: %s", at.name,
			describe(contents))
	}
	return nil
}

// checkNamespacesStay says why terminating namespaces stay.
func checkNamespacesStay(d *doctor) error {
	var dead []string
	for s, err := range silentServers(d) {
		if err != nil {
			return err
		}
		dead = append(dead, s.Name)
	}
	for _, o := range d.kept["namespaces"] {
		ns, err := decodeAs[corev1.Namespace](o.entry)
		if err != nil {
			return fmt.Errorf("%s: %w", o.entry.Key, err)
		}
		var finalizers []string
		for _, f := range ns.Spec.Finalizers {
			finalizers = append(finalizers, string(f))
		}
		at, what := space{o.Prefix, o.Name}, "no content"
		if in := d.contents.by[at]; in != nil {
			what = "content: " + describe(in)
		}
		what += d.holders(func(h hold) bool { return h.space == at })
		if len(dead) > 0 {
			what += "; APIServices that stop every deletion: " + list(dead)
		}
		d.raise(o.entry.Key, codeNamespaceTerminating, "it is being deleted since %s; finalizers: %s; %s",
			ns.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"), list(append(finalizers, ns.Finalizers...)), what)
	}
	return nil
}

// holders lists the finalizers of terminating objects, each with its first object.
func (d *index) holders(of func(hold) bool) string {
	var words []string
	for h, c := range d.held.all() {
		if of(h) {
			words = append(words, fmt.Sprintf("%s of %s (%s)", h.finalizer, phrase.Count(c.objects, "object"), c.first))
		}
	}
	if words == nil {
		return ""
	}
	return "; held by " + few(words, 5, "")
}

// describe lists the resources in a namespace, the most frequent first.
func describe(contents *tally[gvr.GroupResource]) string {
	var words []string
	count := func(gr gvr.GroupResource) int { return contents.by[gr].objects }
	for _, gr := range slices.SortedFunc(maps.Keys(contents.by), func(a, b gvr.GroupResource) int {
		return cmp.Or(cmp.Compare(count(b), count(a)), cmp.Compare(a.String(), b.String()))
	}) {
		words = append(words, fmt.Sprintf("%d %s", count(gr), plain(gr)))
	}
	return few(words, 6, " resources")
}
