package get

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

// order lists types by dependency: a type is applied after those before it. "*" stands for custom
// and unlisted types. Types that may refuse later objects are last: webhook configurations, and
// quotas, which refuse all objects until a controller has counted the existing ones.
func order() []string {
	return strings.Fields(`
		namespaces customresourcedefinitions priorityclasses runtimeclasses storageclasses volumeattributesclasses
		csidrivers
		ingressclasses limitranges networkpolicies serviceaccounts secrets configmaps clusterroles clusterrolebindings
		roles rolebindings persistentvolumes persistentvolumeclaims services endpoints endpointslices
		poddisruptionbudgets *
		controllerrevisions pods podtemplates replicationcontrollers daemonsets deployments replicasets statefulsets
		jobs cronjobs
		horizontalpodautoscalers ingresses apiservices resourcequotas validatingadmissionpolicies
		validatingadmissionpolicybindings
		mutatingadmissionpolicies mutatingadmissionpolicybindings validatingwebhookconfigurations
		mutatingwebhookconfigurations`)
}

// Rank returns the position of a type in the order of dependency, lower first.
func rank(t *inspect.Type) int {
	order := order()
	if t.Builtin {
		if i := slices.Index(order, t.Resource.Resource); i >= 0 {
			return i
		}
	}
	return slices.Index(order, "*")
}

// madeAgain reports whether a controller creates the object: it has a controlling owner, or is an
// APIService that the server registers.
func madeAgain(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return metav1.GetControllerOfNoCopy(&u) != nil || u.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != ""
}

// toManifest removes the fields of servers and controllers, in place. A custom resource at a
// version that is not served is converted to the preferred version of discovery; a conversion by
// webhook is an error.
func toManifest(t *inspect.Type, content map[string]any) (map[string]any, error) {
	if err := convertToServed(t, content); err != nil {
		return nil, err
	}
	remove := func(in string, fields ...string) {
		for _, field := range fields {
			unstructured.RemoveNestedField(content, strings.Split(in+field, ".")...)
		}
	}
	remove("metadata.", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences")
	remove("", "status")
	withoutKeys(content, "metadata.annotations", corev1.LastAppliedConfigAnnotation,
		"deprecated.daemonset.template.generation",
		"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
		"volume.kubernetes.io/selected-node", "kubernetes.io/config.hash", "kubernetes.io/config.seen",
		"kubernetes.io/config.mirror",
		"control-plane.alpha.kubernetes.io/leader", "endpoints.kubernetes.io/last-change-trigger-time")
	finalizers := []any{ // of a deletion in progress, and of controllers
		"foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection",
		"batch.kubernetes.io/job-tracking",
		"customresourcecleanup.apiextensions.k8s.io", "service.kubernetes.io/load-balancer-cleanup",
	}
	meta, _ := content["metadata"].(map[string]any)
	withoutItems(meta, "finalizers", func(item any) bool { return slices.Contains(finalizers, item) })
	if !t.Builtin {
		return content, nil
	}
	switch t.Kind {
	case "Namespace":
		withoutKeys(content, "metadata.labels", corev1.LabelMetadataName)
		withoutKeys(content, "spec", "finalizers")
	case "PersistentVolume":
		remove("spec.claimRef.", "uid", "resourceVersion")
	case "ServiceAccount":
		remove("", "secrets")
	case "Service":
		remove("spec.", "healthCheckNodePort")
		if ip, _, _ := unstructured.NestedString(content, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
			remove("spec.", "clusterIP", "clusterIPs")
		}
	case "Pod":
		// no Pod can be created with the last field
		remove("spec.", "nodeName", "priority", "preemptionPolicy", "ephemeralContainers")
		withoutToken(content)
	case "Job":
		if manual, _, _ := unstructured.NestedBool(content, "spec", "manualSelector"); !manual {
			remove("spec.", "selector")
			for _, path := range []string{"metadata.labels", "spec.template.metadata.labels"} {
				withoutKeys(content, path, "controller-uid", "batch.kubernetes.io/controller-uid", "job-name",
					"batch.kubernetes.io/job-name")
			}
		}
	}
	return content, nil
}

// convertToServed converts a custom resource to a served version.
func convertToServed(t *inspect.Type, content map[string]any) error {
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

// withoutKeys deletes keys of a map, and the map if it is empty.
func withoutKeys(content map[string]any, path string, names ...string) {
	fields := strings.Split(path, ".")
	value, _, _ := unstructured.NestedFieldNoCopy(content, fields...)
	entries, isMap := value.(map[string]any)
	if !isMap {
		return
	}
	for _, name := range names {
		delete(entries, name)
	}
	if len(entries) == 0 {
		unstructured.RemoveNestedField(content, fields...)
	}
}

// withoutItems deletes items of a list, and the list if it is empty.
func withoutItems(in map[string]any, field string, match func(item any) bool) {
	list, isList := in[field].([]any)
	if !isList {
		return
	}
	if in[field] = slices.DeleteFunc(list, match); len(in[field].([]any)) == 0 {
		delete(in, field)
	}
}

// withoutToken removes the volume of the service account's token and its mounts. Admission adds
// them to every Pod.
func withoutToken(content map[string]any) {
	injected := func(item any) bool {
		entry, _ := item.(map[string]any)
		name, _ := entry["name"].(string)
		return strings.HasPrefix(name, "kube-api-access-")
	}
	spec, _ := content["spec"].(map[string]any)
	withoutItems(spec, "volumes", injected)
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		list, _ := spec[field].([]any)
		for _, c := range list {
			container, _ := c.(map[string]any)
			withoutItems(container, "volumeMounts", injected)
		}
	}
}
