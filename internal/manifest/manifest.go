package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
)

// order lists types in the order of dependence: a type is applied after those before it. "*" stands
// for custom resources, and for kinds that are not listed.
func order() []string {
	return []string{"namespaces", "customresourcedefinitions", "priorityclasses", "runtimeclasses", "storageclasses", "volumeattributesclasses",
		"csidrivers", "ingressclasses", "resourcequotas", "limitranges", "networkpolicies", "serviceaccounts", "secrets", "configmaps",
		"clusterroles", "clusterrolebindings", "roles", "rolebindings", "persistentvolumes", "persistentvolumeclaims", "services", "endpoints",
		"endpointslices", "poddisruptionbudgets", "*", "controllerrevisions", "pods", "podtemplates", "replicationcontrollers", "daemonsets",
		"deployments", "replicasets", "statefulsets", "jobs", "cronjobs", "horizontalpodautoscalers", "ingresses", "apiservices",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		// last: they may refuse what comes after them
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
}

// Rank returns the index of a type in the order of dependence.
func Rank(t *inspect.Type) int {
	order := order()
	if t.Builtin {
		if i := slices.Index(order, t.Resource.Resource); i >= 0 {
			return i
		}
	}
	return slices.Index(order, "*")
}

// MadeAgain reports whether a controller makes the object: it has a controlling owner, as
// ReplicaSets have, or is an APIService that the server registers.
func MadeAgain(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return metav1.GetControllerOfNoCopy(&u) != nil || u.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != ""
}

// Export changes content in place. A custom resource gets a served version; if only a webhook can
// convert it, that is an error.
func Export(t *inspect.Type, content map[string]any) (map[string]any, error) {
	if err := serve(t, content); err != nil {
		return nil, err
	}
	remove := func(path string) { unstructured.RemoveNestedField(content, strings.Split(path, ".")...) }
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"managedFields", "selfLink", "ownerReferences"} {
		remove("metadata." + field)
	}
	remove("status")
	withoutKeys(content, []string{"metadata", "annotations"}, corev1.LastAppliedConfigAnnotation, "deprecated.daemonset.template.generation",
		"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
		"volume.kubernetes.io/selected-node", "kubernetes.io/config.hash", "kubernetes.io/config.seen", "kubernetes.io/config.mirror",
		"control-plane.alpha.kubernetes.io/leader", "endpoints.kubernetes.io/last-change-trigger-time")
	withoutFinalizers(content)
	if t.Builtin {
		for _, path := range byKind()[t.Kind] {
			remove(path)
		}
		special(t.Kind, content)
	}
	return content, nil
}

// byKind lists fields that servers and controllers fill in.
func byKind() map[string][]string {
	return map[string][]string{
		"Namespace":        {"spec.finalizers"},
		"Pod":              {"spec.nodeName", "spec.priority", "spec.preemptionPolicy"},
		"PersistentVolume": {"spec.claimRef.uid", "spec.claimRef.resourceVersion"},
		"ServiceAccount":   {"secrets"},
		"Service":          {"spec.healthCheckNodePort"},
	}
}

func special(kind string, content map[string]any) {
	switch kind {
	case "Namespace":
		withoutKeys(content, []string{"metadata", "labels"}, corev1.LabelMetadataName)
		if spec, isMap := content["spec"].(map[string]any); isMap && len(spec) == 0 {
			delete(content, "spec")
		}
	case "Service":
		if ip, _, _ := unstructured.NestedString(content, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
			unstructured.RemoveNestedField(content, "spec", "clusterIP")
			unstructured.RemoveNestedField(content, "spec", "clusterIPs")
		}
	case "Pod":
		withoutToken(content)
	case "Job":
		manual, _, _ := unstructured.NestedBool(content, "spec", "manualSelector")
		if !manual {
			unstructured.RemoveNestedField(content, "spec", "selector")
			for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
				withoutKeys(content, path, "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
			}
		}
	}
}

// serve brings a custom resource to a version that a server takes.
func serve(t *inspect.Type, content map[string]any) error {
	if t.CRD == nil {
		return nil
	}
	apiVersion, _, _ := unstructured.NestedString(content, "apiVersion")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || t.CRD.Served(gv.Version) {
		return err
	}
	to := t.CRD.PreferredVersion()
	if to == "" {
		return fmt.Errorf("no version of %s is served", t.Name())
	}
	if _, err := t.CRD.Convert(content, to); err != nil {
		return fmt.Errorf("stored at %s, which is not served: %w", gv.Version, err)
	}
	return nil
}

// withoutKeys deletes keys of a map, and the map where none is left.
func withoutKeys(content map[string]any, path []string, names ...string) {
	entries, has, _ := unstructured.NestedMap(content, path...)
	if !has {
		return
	}
	for _, name := range names {
		delete(entries, name)
	}
	if len(entries) == 0 {
		unstructured.RemoveNestedField(content, path...)
		return
	}
	_ = unstructured.SetNestedMap(content, entries, path...) // it was there
}

// withoutFinalizers removes finalizers of a deletion, and those that a controller adds by itself.
func withoutFinalizers(content map[string]any) {
	all, has, _ := unstructured.NestedStringSlice(content, "metadata", "finalizers")
	if !has {
		return
	}
	own := []string{"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "batch.kubernetes.io/job-tracking",
		"customresourcecleanup.apiextensions.k8s.io"}
	all = slices.DeleteFunc(all, func(f string) bool { return slices.Contains(own, f) })
	if len(all) == 0 {
		unstructured.RemoveNestedField(content, "metadata", "finalizers")
		return
	}
	_ = unstructured.SetNestedStringSlice(content, all, "metadata", "finalizers")
}

// withoutToken removes the volume with the token, and its mounts, which admission adds.
func withoutToken(content map[string]any) {
	injected := func(item any) bool {
		entry, _ := item.(map[string]any)
		name, _ := entry["name"].(string)
		return strings.HasPrefix(name, "kube-api-access-")
	}
	spec, _ := content["spec"].(map[string]any)
	drop := func(in map[string]any, field string) {
		list, has := in[field].([]any)
		if !has {
			return
		}
		if list = slices.DeleteFunc(list, injected); len(list) == 0 {
			delete(in, field)
		} else {
			in[field] = list
		}
	}
	drop(spec, "volumes")
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		list, _ := spec[field].([]any)
		for _, c := range list {
			if c, isMap := c.(map[string]any); isMap {
				drop(c, "volumeMounts")
			}
		}
	}
}
