package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/etcdshift/etcdshift/internal/columns"
)

// subresource answers a GET of a subresource of a built-in kind.
type subresource struct {
	rest.TableConvertor
	store *store
	kind  schema.GroupVersionKind
	show  func(*unstructured.Unstructured) (runtime.Object, error)
}

// New returns an empty object of the answer's kind.
func (s *subresource) New() runtime.Object {
	obj, _ := s.store.create(s.kind)
	return obj
}

// Destroy does nothing.
func (s *subresource) Destroy() {}

// GroupVersionKind returns the kind of the answer.
func (s *subresource) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return s.kind }

// Get returns the subresource of an object.
func (s *subresource) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	return s.show(obj.(*unstructured.Unstructured))
}

// subresources returns the subresources of a built-in kind: status, the whole object, and scale.
func (s *store) subresources() map[string]*subresource {
	out := map[string]*subresource{}
	if _, has := reflect.TypeOf(s.New()).Elem().FieldByName("Status"); has {
		out["status"] = &subresource{s, s, s.gvk(s.version),
			func(obj *unstructured.Unstructured) (runtime.Object, error) { return obj, nil }}
	}
	if slices.Contains([]string{"deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers"},
		s.Name()) {
		scales := *s.resource
		scales.table = columns.ForScale()
		out["scale"] = &subresource{&store{resource: &scales}, s, autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
			scaleOf}
	}
	return out
}

// scaleOf returns the Scale of an object, like kube-apiserver.
func scaleOf(obj *unstructured.Unstructured) (runtime.Object, error) {
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")
	selector, err := selectorOf(obj)
	if err != nil {
		// err may quote a value
		return nil, fmt.Errorf("%s %s/%s has no valid selector", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	}
	scale := map[string]any{
		"apiVersion": autoscalingv1.SchemeGroupVersion.String(), "kind": "Scale",
		"metadata": map[string]any{
			"name": obj.GetName(), "namespace": obj.GetNamespace(), "uid": string(obj.GetUID()),
			"resourceVersion": obj.GetResourceVersion(),
		},
		"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"replicas": observed,
			"selector": selector},
	}
	if created, has, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "creationTimestamp"); has {
		scale["metadata"].(map[string]any)["creationTimestamp"] = created
	}
	return &unstructured.Unstructured{Object: scale}, nil
}

// selectorOf returns the selector of an object as text. A ReplicationController has a set of
// labels.
func selectorOf(obj *unstructured.Unstructured) (string, error) {
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "selector")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	if obj.GetKind() == "ReplicationController" {
		var set labels.Set
		err := json.Unmarshal(text, &set)
		return labels.SelectorFromSet(set).String(), err
	}
	var selector *metav1.LabelSelector
	if err := json.Unmarshal(text, &selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", err
	}
	return parsed.String(), nil
}
