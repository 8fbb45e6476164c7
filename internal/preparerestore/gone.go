package preparerestore

import (
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	identityLabel    = "apiserver.kubernetes.io/identity"         // of the Leases of API servers
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader" // of elections before Leases
)

// apiServers deletes what API servers renew while they run. The endpoints of the Service kubernetes
// are theirs where they have leases: an API server makes them anew when it starts.
func (r *run) apiServers() {
	masters := 0
	for _, resource := range []string{"masterleases", "peerserverleases", "storageversions.internal.apiserver.k8s.io"} {
		for _, e := range r.of(resource) {
			if resource == "masterleases" {
				masters++
			}
			r.drop(e)
		}
	}
	for key, e := range r.of("leases.coordination.k8s.io") {
		if key.Namespace == "kube-system" && contains(e.Value, identityLabel) && r.readable(e) {
			if meta, err := encoding.ReadMeta(e.Value); err == nil && meta.Labels[identityLabel] != "" {
				r.drop(e)
			}
		}
	}
	if masters == 0 {
		return
	}
	for key, e := range r.of("endpoints") {
		if key.Namespace == corev1.NamespaceDefault && key.Name == "kubernetes" {
			r.drop(e)
		}
	}
	for key, e := range r.of("endpointslices.discovery.k8s.io") {
		if meta, err := encoding.ReadMeta(e.Value); key.Namespace == corev1.NamespaceDefault && err == nil &&
			meta.Labels[discoveryv1.LabelServiceName] == "kubernetes" {
			r.drop(e)
		}
	}
}

// leaderElection deletes Leases that somebody holds, heartbeats of nodes and API servers aside, and
// the annotation that elections used before.
func (r *run) leaderElection() {
	for _, e := range r.of("leasecandidates.coordination.k8s.io") {
		r.drop(e)
	}
	for key, e := range r.of("leases.coordination.k8s.io") {
		if machines.IsNodeLease(key) || !r.readable(e) {
			continue
		}
		lease, err := native.As[coordinationv1.Lease](e.ParseValue())
		if err == nil && lease.Labels[identityLabel] == "" && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			r.drop(e)
		}
	}
	for _, resource := range []string{"configmaps", "endpoints"} {
		for _, e := range r.of(resource) {
			if e.Undecryptable != nil {
				r.readable(e)
			} else if contains(e.Value, leaderAnnotation) && r.readable(e) {
				r.dropAnnotations(e, leaderAnnotation)
			}
		}
	}
}

// dropAnnotations removes annotations from an object.
func (r *run) dropAnnotations(e *transform.Entry, names ...string) {
	value := e.Value
	for _, name := range names {
		var err error
		if value, err = encoding.Set(value, nil, "metadata", "annotations", name); r.Failed(err) {
			return
		}
	}
	if string(value) != string(e.Value) {
		r.Put(e.Key, value)
		r.step.Changed++
	}
}

// stays takes from a Node that comes back the annotations that remove its member from etcd.
func (r *run) stays(e *transform.Entry) {
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil || !r.readable(e) {
		return
	}
	maps.DeleteFunc(meta.Annotations, func(name, value string) bool { return !machines.Removes(name, value) })
	r.dropAnnotations(e, slices.Sorted(maps.Keys(meta.Annotations))...)
}

// nodes deletes Nodes that do not come back, and what says only that they were there.
func (r *run) nodes() {
	for key, e := range r.of("nodes") {
		if r.lost(key.Name) {
			r.drop(e)
		} else {
			r.stays(e)
		}
	}
	for key, e := range r.of("leases.coordination.k8s.io") {
		if machines.IsNodeLease(key) && r.lost(key.Name) {
			r.drop(e)
		}
	}
	for _, resource := range []string{"csinodes.storage.k8s.io", "ciliumnodes.cilium.io"} {
		for key, e := range r.of(resource) {
			if r.lost(key.Name) {
				r.drop(e)
			}
		}
	}
	for _, e := range r.of("resourceslices.resource.k8s.io") {
		if r.tiedToLost(e) {
			r.drop(e)
		}
	}
	for _, e := range r.of("persistentvolumeclaims") {
		if contains(e.Value, machines.SelectedNode) && r.tiedToLost(e) {
			r.dropAnnotations(e, machines.SelectedNode)
		}
	}
	for key, e := range r.of("secrets") {
		if r.lost(machines.PasswordOf(key)) {
			r.drop(e)
		}
	}
}

// tiedToLost tells whether an object names a node that does not come back.
func (r *run) tiedToLost(e *transform.Entry) bool {
	return r.readable(e) && slices.ContainsFunc(r.finder.Ties(e), func(tie machines.Tie) bool { return r.lost(tie.Node) })
}

// pods deletes the Pods of lost nodes. Those that have ended run nowhere: the Pod garbage collector
// deletes them.
func (r *run) pods() {
	for _, e := range r.of("pods") {
		if !r.readable(e) {
			continue
		}
		for _, tie := range r.finder.Ties(e) {
			if tie.Code != machines.CodeNodePods || !r.lost(tie.Node) {
				continue
			}
			if tie.Subject == machines.BarePods {
				r.Raise(string(e.Key), codeBarePod.Because("it was bound to node %s", tie.Node))
			}
			r.drop(e)
			break
		}
	}
}

// dependents deletes what only deleted objects own, unless a finalizer wants to be asked.
func (r *run) dependents() {
	for more := len(r.removed) > 0; more && r.Err == nil; {
		more = false
		for e, err := range r.View.Pick(r.Ctx, r.Keys.Prefix, r.orphan) {
			if r.Failed(err) {
				return
			}
			more = true
			r.drop(e)
		}
	}
}

// orphan tells whether the garbage collector would delete an object at once.
func (r *run) orphan(e *transform.Entry) bool {
	if e.Undecryptable != nil || !contains(e.Value, "uid") && encoding.Detect(e.Value) == encoding.FormatJSON {
		return false
	}
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil || len(meta.OwnerReferences) == 0 || len(meta.Finalizers) > 0 {
		return false
	}
	for _, owner := range meta.OwnerReferences {
		if !r.removed[owner.UID] {
			return false
		}
	}
	return true
}

// follow tells which Pods go after the restore because of the run, where steps leave them: the Pod
// garbage collector deletes those on deleted Nodes, the garbage collector what only such Pods own.
func (r *run) follow() {
	uids, err := r.freed.Stranded(r.Ctx, r.View)
	if r.Failed(err) {
		return
	}
	going := maps.Clone(r.removed)
	for _, uid := range uids {
		going[uid] = true
	}
	stays := func(of encoding.OwnerReference) bool { return !going[of.UID] }
	for more := len(going) > 0; more && r.Err == nil; {
		more = false
		for _, e := range r.of("pods") {
			meta, err := encoding.ReadMeta(e.Value)
			if err != nil || e.Undecryptable != nil || len(meta.OwnerReferences) == 0 || going[meta.UID] || slices.ContainsFunc(meta.OwnerReferences, stays) {
				continue
			}
			r.freed.Goes(e)
			going[meta.UID], more = true, true
		}
	}
}

// endpoints removes the addresses of Pods that were deleted, and of machines that are lost.
func (r *run) endpoints() {
	for _, e := range r.of("endpointslices.discovery.k8s.io") {
		o := r.object(e)
		if o == nil {
			continue
		}
		content := runtime.DeepCopyJSON(o.Content)
		all, _ := content["endpoints"].([]any)
		left := r.reachable(all)
		if len(left) == len(all) {
			continue
		}
		by := encoding.Meta{}
		if meta, err := encoding.ReadMeta(e.Value); err == nil {
			by = meta
		}
		if len(left) == 0 && strings.HasSuffix(by.Labels[discoveryv1.LabelManagedBy], "-controller.k8s.io") {
			r.drop(e) // which the controllers of Kubernetes make anew
			continue
		}
		content["endpoints"] = left
		r.put(o, content)
	}
	for _, e := range r.of("endpoints") {
		if o := r.object(e); o != nil {
			r.trimSubsets(o)
		}
	}
}

// trimSubsets is endpoints for one object of the older kind.
func (r *run) trimSubsets(o *inspect.Object) {
	content := runtime.DeepCopyJSON(o.Content)
	subsets, _ := content["subsets"].([]any)
	var left []any
	gone := 0
	for _, s := range subsets {
		subset, _ := s.(map[string]any)
		kept := 0
		for _, field := range []string{"addresses", "notReadyAddresses"} {
			all, _ := subset[field].([]any)
			some := r.reachable(all)
			gone += len(all) - len(some)
			if kept += len(some); len(some) == 0 {
				delete(subset, field)
			} else {
				subset[field] = some
			}
		}
		if kept > 0 {
			left = append(left, subset)
		}
	}
	switch {
	case gone == 0:
		return
	case len(left) == 0:
		delete(content, "subsets")
	default:
		content["subsets"] = left
	}
	r.put(o, content)
}

// reachable returns the endpoints that are neither of deleted Pods nor on lost nodes.
func (r *run) reachable(all []any) (left []any) {
	left = []any{}
	for _, one := range all {
		endpoint, _ := one.(map[string]any)
		node, _ := endpoint["nodeName"].(string)
		target, _ := endpoint["targetRef"].(map[string]any)
		uid, _ := target["uid"].(string)
		if !r.lost(node) && !r.removed[uid] {
			left = append(left, one)
		}
	}
	return left
}

// volumeAttachments deletes those of lost nodes.
func (r *run) volumeAttachments() {
	for _, e := range r.of("volumeattachments.storage.k8s.io") {
		if !r.readable(e) {
			continue
		}
		for _, tie := range r.finder.Ties(e) {
			if !r.keep[tie.Node] {
				r.drop(e)
			}
		}
	}
	if r.step.Deleted > 0 {
		r.Step("volume-attached: VolumeAttachments were deleted; detach the volumes from the old machines in the storage before Pods need them")
	}
}

func (r *run) certificateRequests() {
	r.dropAll("certificatesigningrequests.certificates.k8s.io")
	r.dropAll("podcertificaterequests.certificates.k8s.io")
}

func (r *run) events() { r.dropAll("events") }

// dropAll deletes all objects of a resource.
func (r *run) dropAll(resource string) {
	for _, e := range r.of(resource) {
		r.drop(e)
	}
}

// bootstrapTokens deletes the Secrets with which machines join.
func (r *run) bootstrapTokens() {
	for key, e := range r.of("secrets") {
		if key.Namespace != "kube-system" || !strings.HasPrefix(key.Name, "bootstrap-token-") || !r.readable(e) {
			continue
		}
		secret, err := native.As[corev1.Secret](e.ParseValue())
		if err == nil && secret.Type == corev1.SecretTypeBootstrapToken {
			r.drop(e)
		}
	}
	if r.step.Deleted > 0 {
		r.Step("bootstrap tokens were deleted: `kubeadm token create` makes one for the new machines")
	}
}

// serviceAccountTokens empties the Secrets that hold tokens. The token controller fills them anew,
// with the new key; deleted ones it would not make again, and Pods that mount them would not start.
func (r *run) serviceAccountTokens() {
	for _, e := range r.of("secrets") {
		if !r.readable(e) {
			continue
		}
		for _, tie := range r.finder.Ties(e) {
			if tie.Code == machines.CodeTokenKey {
				r.emptyToken(e)
			}
		}
	}
}

func (r *run) emptyToken(e *transform.Entry) {
	o := r.object(e)
	if o == nil {
		return
	}
	content := runtime.DeepCopyJSON(o.Content)
	data, _ := content["data"].(map[string]any)
	delete(data, corev1.ServiceAccountTokenKey)
	r.put(o, content)
}
