package preparerestore

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	identityLabel    = "apiserver.kubernetes.io/identity"         // of the Leases of API servers
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader" // of leader elections before Leases
)

// isMaster selects all addresses of API servers.
func isMaster(r *run, _ keys.Key, _ *transform.Entry) bool {
	r.masters = true
	return true
}

// isServerLease selects Leases of API servers.
func isServerLease(r *run, key keys.Key, e *transform.Entry) bool {
	if key.Namespace != "kube-system" || !contains(e.Value, identityLabel) || !r.readable(e) {
		return false
	}
	meta, err := encoding.ReadMeta(e.Value)
	return err == nil && meta.Labels[identityLabel] != ""
}

// isServerEndpoints selects the endpoints of the Service kubernetes if API servers have leases: an
// API server recreates the endpoints at startup.
func isServerEndpoints(r *run, key keys.Key, e *transform.Entry) bool {
	if !r.masters || key.Namespace != corev1.NamespaceDefault {
		return false
	}
	name := key.Name
	if key.Resource.Resource == "endpointslices" {
		meta, _ := encoding.ReadMeta(e.Value) // without a Service name if unreadable
		name = meta.Labels[discoveryv1.LabelServiceName]
	}
	return name == "kubernetes"
}

// isHeld selects Leases with a holder, except heartbeats of nodes and API servers.
func isHeld(r *run, key keys.Key, e *transform.Entry) bool {
	if machines.IsNodeLease(key) || !r.readable(e) {
		return false
	}
	lease, err := native.As[coordinationv1.Lease](e.ParseValue())
	return err == nil && lease.Labels[identityLabel] == "" && ptr.Deref(lease.Spec.HolderIdentity, "") != ""
}

// isLostLease selects the heartbeats of a lost node.
func isLostLease(r *run, key keys.Key, _ *transform.Entry) bool {
	return machines.IsNodeLease(key) && r.lost(key.Name)
}

// isNamedLost selects objects with the name of a lost node.
func isNamedLost(r *run, key keys.Key, _ *transform.Entry) bool { return r.lost(key.Name) }

// isTiedToLost selects objects that refer to a lost node.
func isTiedToLost(r *run, _ keys.Key, e *transform.Entry) bool {
	return slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return r.lost(tie.Node) })
}

// isPassword selects the Secret with the password of a lost node.
func isPassword(r *run, key keys.Key, _ *transform.Entry) bool {
	return r.lost(machines.PasswordOf(key))
}

// isLostPod selects Pods of a lost node, except completed Pods, which the Pod garbage collector
// deletes.
func isLostPod(r *run, _ keys.Key, e *transform.Entry) bool {
	for _, tie := range r.ties(e) {
		if tie.Code != machines.CodeNodePods || !r.lost(tie.Node) {
			continue
		}
		if tie.Subject == machines.BarePods {
			r.view.Raise(string(e.Key), codeBarePod.Because("it was bound to node %s", tie.Node))
		}
		return true
	}
	return false
}

// isAttachment selects the VolumeAttachments of lost nodes.
func isAttachment(r *run, _ keys.Key, e *transform.Entry) bool {
	return slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return !r.keep[tie.Node] })
}

// isBootstrapToken selects Secrets for joining machines.
func isBootstrapToken(r *run, key keys.Key, e *transform.Entry) bool {
	if key.Namespace != "kube-system" || !strings.HasPrefix(key.Name, "bootstrap-token-") || !r.readable(e) {
		return false
	}
	secret, err := native.As[corev1.Secret](e.ParseValue())
	return err == nil && secret.Type == corev1.SecretTypeBootstrapToken
}

// ties returns the ties of a readable object to the machines.
func (r *run) ties(e *transform.Entry) []machines.Tie {
	if !r.readable(e) {
		return nil
	}
	return r.finder.Ties(e)
}

// dropNode deletes a lost Node. From a kept Node it removes the annotations that cause the removal
// of the node's member from etcd.
func dropNode(r *run, key keys.Key, e *transform.Entry) error {
	if r.lost(key.Name) {
		return r.drop(e)
	}
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil || !r.readable(e) {
		return nil
	}
	maps.DeleteFunc(meta.Annotations, func(name, value string) bool { return !machines.Removes(name, value) })
	return r.dropAnnotations(e, slices.Sorted(maps.Keys(meta.Annotations))...)
}

// dropLeader removes the leader election annotation used before Leases.
func dropLeader(r *run, _ keys.Key, e *transform.Entry) error {
	if (e.Undecryptable != nil || contains(e.Value, leaderAnnotation)) && r.readable(e) {
		return r.dropAnnotations(e, leaderAnnotation)
	}
	return nil
}

// dropSelection lets a claim that waits for its volume on a lost node choose another node.
func dropSelection(r *run, key keys.Key, e *transform.Entry) error {
	if contains(e.Value, machines.SelectedNode) && isTiedToLost(r, key, e) {
		return r.dropAnnotations(e, machines.SelectedNode)
	}
	return nil
}

// dropAnnotations removes annotations from an object.
func (r *run) dropAnnotations(e *transform.Entry, names ...string) (err error) {
	value := e.Value
	for _, name := range names {
		if value, err = encoding.Set(value, nil, "metadata", "annotations", name); err != nil {
			return err
		}
	}
	if string(value) == string(e.Value) {
		return nil
	}
	r.step.Changed++
	return r.view.Put(r.ctx, e.Key, value)
}

// dropDependents deletes objects owned only by deleted objects, unless they have a finalizer.
func dropDependents(r *run) error {
	for more := len(r.removed) > 0; more; {
		more = false
		err := stream.Each(r.view.Pick(r.ctx, r.prefix, r.orphan), func(e *transform.Entry) error {
			more = true
			return r.drop(e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orphan reports whether the garbage collector would delete an object immediately.
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

// follow records the Pods deleted after the restore as a consequence of the run: Pods on deleted
// Nodes (Pod garbage collector), and objects owned only by such Pods (garbage collector).
func (r *run) follow() error {
	uids, err := r.freed.Stranded(r.ctx)
	if err != nil {
		return err
	}
	going := maps.Clone(r.removed)
	for _, uid := range uids {
		going[uid] = true
	}
	stays := func(of encoding.OwnerReference) bool { return !going[of.UID] }
	for more := len(going) > 0; more; {
		more = false
		err := each("pods", func(r *run, _ keys.Key, e *transform.Entry) error {
			meta, err := encoding.ReadMeta(e.Value)
			of := meta.OwnerReferences
			if err == nil && e.Undecryptable == nil && len(of) > 0 && !going[meta.UID] &&
				!slices.ContainsFunc(of, stays) {
				r.freed.Goes(e)
				going[meta.UID], more = true, true
			}
			return nil
		})(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// edit stages an object with the content changed by fn, if the object is readable and fn returns
// true.
func (r *run) edit(e *transform.Entry, fn func(content map[string]any) bool) error {
	o := r.object(e)
	if o == nil {
		return nil
	}
	content := runtime.DeepCopyJSON(o.Content)
	if !fn(content) {
		return nil
	}
	_, err := r.put(o, content)
	return err
}

// trimSlice removes the addresses of deleted Pods and lost machines.
func trimSlice(r *run, _ keys.Key, e *transform.Entry) error {
	empty := false
	err := r.edit(e, func(content map[string]any) bool {
		all, _ := content["endpoints"].([]any)
		left := r.reachable(all)
		by, _, _ := unstructured.NestedString(content, "metadata", "labels", discoveryv1.LabelManagedBy)
		empty = len(all) > 0 && len(left) == 0 && strings.HasSuffix(by, "-controller.k8s.io")
		content["endpoints"] = left
		return len(left) < len(all) && !empty
	})
	if err == nil && empty { // Kubernetes controllers recreate it
		return r.drop(e)
	}
	return err
}

// trimSubsets is trimSlice for Endpoints.
func trimSubsets(r *run, _ keys.Key, e *transform.Entry) error {
	return r.edit(e, func(content map[string]any) bool {
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
		if content["subsets"] = left; len(left) == 0 {
			delete(content, "subsets")
		}
		return gone > 0
	})
}

// reachable returns the endpoints that belong neither to deleted Pods nor to lost nodes.
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

// emptyToken empties a token Secret. The token controller refills the Secret with the new key, but
// would not recreate a deleted Secret, and Pods that mount the Secret would not start.
func emptyToken(r *run, _ keys.Key, e *transform.Entry) error {
	if !slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return tie.Code == machines.CodeTokenKey }) {
		return nil
	}
	return r.edit(e, func(content map[string]any) bool {
		data, _ := content["data"].(map[string]any)
		delete(data, corev1.ServiceAccountTokenKey)
		return true
	})
}

// ignoreFailures makes API servers ignore failures of webhooks that run in the cluster.
func ignoreFailures(r *run, _ keys.Key, e *transform.Entry) error {
	o := r.object(e)
	if o == nil {
		return nil
	}
	content := runtime.DeepCopyJSON(o.Content)
	hooks, _ := content["webhooks"].([]any)
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if !mustAnswer(o, hook) {
			continue
		}
		inside, err := r.runsInside(hook)
		if err != nil {
			return err
		}
		if inside {
			hook["failurePolicy"] = string(admissionv1.Ignore)
		}
	}
	return r.putSaved(o, content)
}

// runsInside reports whether a webhook is behind a Service of the cluster.
func (r *run) runsInside(hook map[string]any) (bool, error) {
	client, _ := hook["clientConfig"].(map[string]any)
	ref, is := client["service"].(map[string]any)
	namespace, _ := ref["namespace"].(string)
	name, _ := ref["name"].(string)
	svc, err := r.storage().Service(r.ctx, namespace, name)
	return is && (svc == nil || !machines.Outside(svc)), err
}

// mustAnswer reports whether API servers refuse requests if a webhook does not answer.
func mustAnswer(o *inspect.Object, hook map[string]any) bool {
	policy, _ := hook["failurePolicy"].(string)
	apiVersion, _ := o.Content["apiVersion"].(string)
	return policy == string(admissionv1.Fail) || policy == "" && !strings.HasSuffix(apiVersion, "/v1beta1")
}

// dropSilent deletes the APIService of an aggregated API server that does not answer.
func dropSilent(r *run, _ keys.Key, e *transform.Entry) error {
	if !r.readable(e) {
		return nil
	}
	service, err := native.As[machines.APIService](e.ParseValue())
	if err != nil {
		return nil // doctor reports it
	}
	silence, err := r.storage().Silent(r.ctx, &service)
	if err != nil || silence.State == machines.Answering {
		return err
	}
	group := service.Spec.Group
	if slices.ContainsFunc(r.types.All(), func(t *inspect.Type) bool {
		return t.CRD != nil &&
			t.Resource.Group == group
	}) {
		r.view.Report().AddStep("APIService %s stays, though nothing answers: without it the group would be served "+
			"from its definitions, "+
			"which may be empty, and the garbage collector would delete what its objects own. "+
			"Of Calico, migrate the data first (docs/guides/calico-v3.md)", service.Spec.Version+"."+group)
		return nil
	}
	o := r.object(e)
	if o == nil {
		return nil
	}
	if err := r.save(e.Key, storedContent(o), nil); err != nil {
		return err
	}
	return r.drop(e)
}
