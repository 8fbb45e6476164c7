package preparerestore

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// isolate changes the objects of all rows of the table that belong to the step.
func (r *run) isolate() error {
	for _, w := range table() {
		if w.step != r.step.Step {
			continue
		}
		if err := r.eachOf(w, func(o *inspect.Object) error { return r.stop(w, o) }); err != nil {
			return err
		}
	}
	if r.step.Step != "controllers" {
		return nil
	}
	for _, w := range noSwitch() {
		count := 0
		err := r.eachOf(w, func(o *inspect.Object) error {
			if acme, _, _ := unstructured.NestedFieldNoCopy(o.Content, "spec", "acme"); w.who != "cert-manager" || acme != nil {
				count++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if count > 0 {
			r.view.Report().AddStep("no switch pauses %s (%s: %d): %s", w.who, strings.Join(w.types, ", "), count, w.text)
		}
	}
	return nil
}

// eachOf calls fn with the readable objects of a row.
func (r *run) eachOf(w row, fn func(*inspect.Object) error) error {
	for _, t := range r.types.All() {
		if !w.matches(t) {
			continue
		}
		err := stream.Each(r.view.Objects(r.ctx, t, inspect.Selection{}), func(o *inspect.Object) error {
			switch {
			case o.Parsed.Prefix != r.keys.Prefix:
			case o.Err != nil:
				r.view.Raise(string(o.Key), transform.Unreadable(o.Err))
			default:
				return fn(o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stop changes one object as its row says.
func (r *run) stop(w row, o *inspect.Object) error {
	content := runtime.DeepCopyJSON(o.Content)
	for _, f := range w.fields {
		now, there, _ := unstructured.NestedFieldNoCopy(content, f.path...)
		switch {
		case f.only != nil && now != f.only:
		case f.value != nil:
			_ = unstructured.SetNestedField(content, f.value, f.path...) // what is no object stays, and PutObject has nothing to do
		case there:
			unstructured.RemoveNestedField(content, f.path...)
		}
	}
	if w.edit != nil {
		w.edit(r, o, content)
	}
	content = transform.AsUpdated(o, content)
	if reflect.DeepEqual(content, o.Content) {
		return nil
	}
	before := r.step.Changed
	err := r.putSaved(o, content)
	if r.step.Changed > before {
		r.freed.Changed(o.Entry, content)
	}
	return err
}

// scaleDown has a workload run no Pods.
func scaleDown(r *run, o *inspect.Object, content map[string]any) {
	replicas, there, err := unstructured.NestedInt64(content, "spec", "replicas")
	if !there && err == nil {
		replicas = 1 // the default
	}
	if err != nil || replicas == 0 || r.runs(o, "spec", "template", "spec") {
		return
	}
	_ = unstructured.SetNestedField(content, int64(0), "spec", "replicas") // spec is there: it has the template
	_ = unstructured.SetNestedField(content, strconv.FormatInt(replicas, 10), "metadata", "annotations", markOf)
}

// unselect has Pods, whose spec is at path, wait for a node with a label that none has.
func unselect(path ...string) func(*run, *inspect.Object, map[string]any) {
	return func(r *run, o *inspect.Object, content map[string]any) {
		bound, _, _ := unstructured.NestedString(content, "spec", "nodeName")
		phase, _, _ := unstructured.NestedString(content, "status", "phase")
		if bound == "" && phase != "Succeeded" && phase != "Failed" && !r.runs(o, path...) {
			_ = unstructured.SetNestedField(content, "true", append(slices.Clone(path), "nodeSelector", mark)...)
		}
	}
}

// suspendJob suspends a Job that has not ended.
func suspendJob(_ *run, _ *inspect.Object, content map[string]any) {
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return
		}
	}
	_ = unstructured.SetNestedField(content, true, "spec", "suspend")
}

// withoutBalancer makes a Service one of the cluster alone; fields that depend on the type go with
// it. With a finalizer, a cloud controller would delete the load balancer, which is that of
// production.
func withoutBalancer(_ *run, _ *inspect.Object, content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	if spec["type"] != "LoadBalancer" {
		return
	}
	spec["type"] = "ClusterIP"
	delete(spec, "loadBalancerIP")
	delete(spec, "loadBalancerSourceRanges")
	unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.AnnotationLoadBalancerSourceRangesKey)
	unstructured.RemoveNestedField(content, "metadata", "finalizers")
}

// runs tells whether a workload, or a Pod of one, keeps running in a copy: DNS and kube-proxy,
// and what --keep-running names.
func (r *run) runs(o *inspect.Object, podSpec ...string) bool {
	namespace := o.Parsed.Namespace
	for _, name := range workloadNames(o) {
		if slices.Contains(r.running, namespace+"/"+name) {
			return true
		}
	}
	spec, _, _ := unstructured.NestedMap(o.Content, podSpec...)
	if actsOutside(spec) {
		return false
	}
	if slices.Contains(r.running, namespace) {
		return true
	}
	app, _, _ := unstructured.NestedString(o.Content, "metadata", "labels", "k8s-app")
	return namespace == "kube-system" && slices.Contains([]string{"kube-dns", "kube-proxy", "node-local-dns"}, app)
}

// workloadNames returns the names of an object and of its owners. The owner of Pods is often a
// ReplicaSet, whose name begins with that of its Deployment.
func workloadNames(o *inspect.Object) []string {
	names := []string{o.Parsed.Name}
	owners, _, _ := unstructured.NestedSlice(o.Content, "metadata", "ownerReferences")
	for _, one := range owners {
		owner, _ := one.(map[string]any)
		name, _ := owner["name"].(string)
		names = append(names, name)
		if dash := strings.LastIndex(name, "-"); owner["kind"] == "ReplicaSet" && dash > 0 {
			names = append(names, name[:dash])
		}
	}
	return names
}

// actsOutside tells whether a container's image is one of actors.
func actsOutside(podSpec map[string]any) bool {
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := podSpec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			image, _ := container["image"].(string)
			if slices.ContainsFunc(actors(), func(actor string) bool { return strings.Contains(image, actor) }) {
				return true
			}
		}
	}
	return false
}
