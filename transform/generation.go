package transform

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/inspect"
)

// templateGeneration is where a server keeps the generation of a DaemonSet's pod template.
const templateGeneration = "deprecated.daemonset.template.generation"

// keepGeneration gives after the generation of before, as a server does: nobody sets it.
func keepGeneration(before, after map[string]any) {
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	if generation, has := was["generation"]; has && is != nil {
		is["generation"] = generation
	} else {
		delete(is, "generation")
	}
}

// grow sets metadata.generation of after as a server's update of before does; they had
// the same. Kinds with a generation begin at 1, others have none.
func grow(t *inspect.Type, before, after map[string]any) {
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	generation, _ := was["generation"].(int64)
	if generation == 0 || !asksMore(t, before, after) {
		return
	}
	is = maps.Clone(is)
	is["generation"], after["metadata"] = generation+1, is
	if t.Name() == "daemonsets.apps" && !reflect.DeepEqual(template(before), template(after)) {
		growTemplate(is)
	}
}

// asksMore reports whether a change is one of what is wanted, and not of what is. Of a custom
// resource without the subresource, the status is wanted too.
func asksMore(t *inspect.Type, before, after map[string]any) bool {
	changed := differing(before, after)
	wanted := func(field string) bool {
		switch field {
		case "apiVersion", "kind", "metadata":
			return false
		case "status":
			return t.CRD != nil && !hasStatus(t, before)
		}
		return true
	}
	if slices.ContainsFunc(changed, wanted) {
		return true
	}
	also := map[string]string{"deployments.apps": "annotations", "endpointslices.discovery.k8s.io": "labels"}[t.Name()]
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	return also != "" && !reflect.DeepEqual(was[also], is[also])
}

// hasStatus reports whether the version of a custom resource has the status subresource.
func hasStatus(t *inspect.Type, content map[string]any) bool {
	apiVersion, _ := content["apiVersion"].(string)
	for _, version := range t.CRD.Object().Spec.Versions {
		if t.CRD.GroupKind().Group+"/"+version.Name == apiVersion {
			return version.Subresources != nil && version.Subresources.Status != nil
		}
	}
	return false
}

func template(content map[string]any) any {
	spec, _ := content["spec"].(map[string]any)
	return spec["template"]
}

// growTemplate raises the generation of a template.
func growTemplate(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[templateGeneration].(string)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		annotations = maps.Clone(annotations)
		annotations[templateGeneration] = strconv.FormatInt(n+1, 10)
		metadata["annotations"] = annotations
	}
}
