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

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	identityLabel    = "apiserver.kubernetes.io/identity"         // of the Leases of API servers
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader" // of elections before Leases
)

// dropMaster deletes the address of an API server.
func (r *run) dropMaster(key keys.Key, e *transform.Entry) error {
	r.masters = true
	return r.drop(key, e)
}

// dropServerLease deletes the Lease of an API server.
func (r *run) dropServerLease(key keys.Key, e *transform.Entry) error {
	if key.Namespace != "kube-system" || !contains(e.Value, identityLabel) || !r.readable(e) {
		return nil
	}
	meta, err := encoding.ReadMeta(e.Value)
	return r.dropIf(err == nil && meta.Labels[identityLabel] != "", key, e)
}

// dropServerEndpoints deletes the endpoints of the Service kubernetes. They are those of API
// servers where these have leases: an API server makes them anew when it starts.
func (r *run) dropServerEndpoints(key keys.Key, e *transform.Entry) error {
	if !r.masters || key.Namespace != corev1.NamespaceDefault {
		return nil
	}
	name := key.Name
	if key.Resource.Resource == "endpointslices" {
		meta, _ := encoding.ReadMeta(e.Value) // of no Service where it cannot be read
		name = meta.Labels[discoveryv1.LabelServiceName]
	}
	return r.dropIf(name == "kubernetes", key, e)
}

// dropHeldLease deletes a Lease that somebody holds, heartbeats of nodes and API servers aside.
func (r *run) dropHeldLease(key keys.Key, e *transform.Entry) error {
	if machines.IsNodeLease(key) || !r.readable(e) {
		return nil
	}
	lease, err := native.As[coordinationv1.Lease](e.ParseValue())
	held := err == nil && lease.Labels[identityLabel] == "" && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
	return r.dropIf(held, key, e)
}

// dropLeader removes the annotation that elections used before Leases.
func (r *run) dropLeader(_ keys.Key, e *transform.Entry) error {
	if (e.Undecryptable != nil || contains(e.Value, leaderAnnotation)) && r.readable(e) {
		return r.dropAnnotations(e, leaderAnnotation)
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

// dropNode deletes a Node that does not come back, and takes from another one the annotations that
// remove its member from etcd.
func (r *run) dropNode(key keys.Key, e *transform.Entry) error {
	if r.lost(key.Name) {
		return r.drop(key, e)
	}
	meta, err := encoding.ReadMeta(e.Value)
	if err != nil || !r.readable(e) {
		return nil
	}
	maps.DeleteFunc(meta.Annotations, func(name, value string) bool { return !machines.Removes(name, value) })
	return r.dropAnnotations(e, slices.Sorted(maps.Keys(meta.Annotations))...)
}

// dropNodeLease deletes the heartbeats of a lost node.
func (r *run) dropNodeLease(key keys.Key, e *transform.Entry) error {
	return r.dropIf(machines.IsNodeLease(key) && r.lost(key.Name), key, e)
}

// dropNamed deletes an object with the name of a lost node.
func (r *run) dropNamed(key keys.Key, e *transform.Entry) error {
	return r.dropIf(r.lost(key.Name), key, e)
}

// dropTied deletes an object that names a lost node.
func (r *run) dropTied(key keys.Key, e *transform.Entry) error {
	return r.dropIf(r.tiedToLost(e), key, e)
}

// dropSelection has a claim that waits for its volume choose another node than a lost one.
func (r *run) dropSelection(_ keys.Key, e *transform.Entry) error {
	if contains(e.Value, machines.SelectedNode) && r.tiedToLost(e) {
		return r.dropAnnotations(e, machines.SelectedNode)
	}
	return nil
}

// dropPassword deletes the Secret with the password of a lost node.
func (r *run) dropPassword(key keys.Key, e *transform.Entry) error {
	return r.dropIf(r.lost(machines.PasswordOf(key)), key, e)
}

// ties returns what ties a readable object to the machines.
func (r *run) ties(e *transform.Entry) []machines.Tie {
	if !r.readable(e) {
		return nil
	}
	return r.finder.Ties(e)
}

// tiedToLost tells whether an object names a node that does not come back.
func (r *run) tiedToLost(e *transform.Entry) bool {
	return slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return r.lost(tie.Node) })
}

// dropPod deletes a Pod of a lost node. One that has ended runs nowhere: the Pod garbage collector
// deletes it.
func (r *run) dropPod(key keys.Key, e *transform.Entry) error {
	for _, tie := range r.ties(e) {
		if tie.Code != machines.CodeNodePods || !r.lost(tie.Node) {
			continue
		}
		if tie.Subject == machines.BarePods {
			r.view.Raise(string(e.Key), codeBarePod.Because("it was bound to node %s", tie.Node))
		}
		return r.drop(key, e)
	}
	return nil
}

// dropAttachment deletes the VolumeAttachment of a lost node.
func (r *run) dropAttachment(key keys.Key, e *transform.Entry) error {
	return r.dropIf(slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return !r.keep[tie.Node] }), key, e)
}

// dropDependents deletes what only deleted objects own, unless a finalizer wants to be asked.
func (r *run) dropDependents() error {
	for more := len(r.removed) > 0; more; {
		more = false
		for e, err := range r.view.Pick(r.ctx, r.keys.Prefix, r.orphan) {
			if err != nil {
				return err
			}
			more = true
			if err := r.drop(keys.Key{}, e); err != nil {
				return err
			}
		}
	}
	return nil
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
func (r *run) follow() error {
	uids, err := r.freed.Stranded(r.ctx, r.view)
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
		err := r.each("pods", func(_ *run, _ keys.Key, e *transform.Entry) error {
			meta, err := encoding.ReadMeta(e.Value)
			of := meta.OwnerReferences
			if err == nil && e.Undecryptable == nil && len(of) > 0 && !going[meta.UID] && !slices.ContainsFunc(of, stays) {
				r.freed.Goes(e)
				going[meta.UID], more = true, true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trimSlice removes the addresses of Pods that were deleted, and of machines that are lost.
func (r *run) trimSlice(key keys.Key, e *transform.Entry) error {
	o := r.object(e)
	if o == nil {
		return nil
	}
	content := runtime.DeepCopyJSON(o.Content)
	all, _ := content["endpoints"].([]any)
	left := r.reachable(all)
	if len(left) == len(all) {
		return nil
	}
	by, _, _ := unstructured.NestedString(content, "metadata", "labels", discoveryv1.LabelManagedBy)
	if len(left) == 0 && strings.HasSuffix(by, "-controller.k8s.io") {
		return r.drop(key, e) // which the controllers of Kubernetes make anew
	}
	content["endpoints"] = left
	_, err := r.put(o, content)
	return err
}

// trimSubsets is trimSlice for one object of the older kind.
func (r *run) trimSubsets(_ keys.Key, e *transform.Entry) error {
	o := r.object(e)
	if o == nil {
		return nil
	}
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
		return nil
	case len(left) == 0:
		delete(content, "subsets")
	default:
		content["subsets"] = left
	}
	_, err := r.put(o, content)
	return err
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

// dropBootstrapToken deletes a Secret with which machines join.
func (r *run) dropBootstrapToken(key keys.Key, e *transform.Entry) error {
	if key.Namespace != "kube-system" || !strings.HasPrefix(key.Name, "bootstrap-token-") || !r.readable(e) {
		return nil
	}
	secret, err := native.As[corev1.Secret](e.ParseValue())
	return r.dropIf(err == nil && secret.Type == corev1.SecretTypeBootstrapToken, key, e)
}

// emptyToken empties a Secret that holds a token. The token controller fills it anew, with the new
// key; a deleted one it would not make again, and Pods that mount it would not start.
func (r *run) emptyToken(_ keys.Key, e *transform.Entry) error {
	if !slices.ContainsFunc(r.ties(e), func(tie machines.Tie) bool { return tie.Code == machines.CodeTokenKey }) {
		return nil
	}
	o := r.object(e)
	if o == nil {
		return nil
	}
	content := runtime.DeepCopyJSON(o.Content)
	data, _ := content["data"].(map[string]any)
	delete(data, corev1.ServiceAccountTokenKey)
	_, err := r.put(o, content)
	return err
}

// ignoreFailures has API servers go on where a webhook that runs in the cluster does not answer.
func (r *run) ignoreFailures(_ keys.Key, e *transform.Entry) error {
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
	svc, err := machines.Storage{Source: r.view, Prefix: r.keys.Prefix}.Service(r.ctx, namespace, name)
	return is && (svc == nil || !machines.Outside(svc)), err
}

// mustAnswer tells whether API servers refuse requests where a webhook does not answer.
func mustAnswer(o *inspect.Object, hook map[string]any) bool {
	policy, _ := hook["failurePolicy"].(string)
	apiVersion, _ := o.Content["apiVersion"].(string)
	return policy == string(admissionv1.Fail) || policy == "" && !strings.HasSuffix(apiVersion, "/v1beta1")
}

// dropSilent deletes the APIService of an aggregated API server that does not answer.
func (r *run) dropSilent(key keys.Key, e *transform.Entry) error {
	if !r.readable(e) {
		return nil
	}
	service, err := native.As[machines.APIService](e.ParseValue())
	if err != nil {
		return nil // doctor names it
	}
	silence, err := machines.Storage{Source: r.view, Prefix: r.keys.Prefix}.Silent(r.ctx, &service)
	if err != nil || silence.State == machines.Answering {
		return err
	}
	group := service.Spec.Group
	if slices.ContainsFunc(r.types.All(), func(t *inspect.Type) bool { return t.CRD != nil && t.Resource.Group == group }) {
		r.view.Report().AddStep("APIService %s stays, though nothing answers: without it the group would be served from its definitions, "+
			"which may be empty, and the garbage collector would delete what its objects own. "+
			"Of Calico, migrate the data first (docs/guides/calico-v3.md)", service.Spec.Version+"."+group)
		return nil
	}
	o := r.object(e)
	if o == nil {
		return nil
	}
	if err := r.save(e.Key, whole(o), nil); err != nil {
		return err
	}
	return r.drop(key, e)
}
