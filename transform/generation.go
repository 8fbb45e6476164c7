package transform

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// templateGeneration is the annotation with the generation of a DaemonSet's pod template.
const templateGeneration = "deprecated.daemonset.template.generation"

// keepGeneration copies metadata.generation from before to after: clients cannot set the
// generation.
func keepGeneration(before, after map[string]any) {
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	if generation, has := was["generation"]; has && is != nil {
		is["generation"] = generation
	} else {
		delete(is, "generation")
	}
}

// raiseGeneration sets metadata.generation of after as a server's update of before does. Both have
// the same generation on entry.
func raiseGeneration(o *inspect.Object, before, after map[string]any) {
	t := o.Type
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	generation, _ := was["generation"].(int64)
	// CSIDrivers begin without a generation; other kinds had none in older releases
	if generation == 0 && t.Name() != "csidrivers.storage.k8s.io" || !specChanged(o, before, after) {
		return
	}
	is = maps.Clone(is)
	is["generation"], after["metadata"] = generation+1, is
	if t.Name() == "daemonsets.apps" && differ(before, after, "spec", "template") {
		growTemplate(is)
	}
}

// specChanged reports whether a server counts an update as a change of the desired state. Sources:
// PrepareForUpdate of each strategy below pkg/registry of Kubernetes 1.36.
func specChanged(o *inspect.Object, before, after map[string]any) bool {
	t := o.Type
	if t.CRD != nil {
		return customChanged(t, before, after)
	}
	switch t.Name() {
	case "priorityclasses.scheduling.k8s.io": // begin at 1 and stay at 1
		return false
	case "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":
		return differ(before, after, "webhooks") || emptyBundle(o)
	case "podtemplates":
		return differ(before, after, "template")
	case "endpointslices.discovery.k8s.io":
		return differ(before, after, "endpoints") || differ(before, after, "ports") ||
			differ(before, after, "metadata", "labels")
	case "deployments.apps":
		return differ(before, after, "spec") || differ(before, after, "metadata", "annotations")
	}
	return differ(before, after, "spec")
}

// emptyBundle reports whether an update removes a caBundle of zero bytes.
func emptyBundle(o *inspect.Object) bool {
	parsed, err := o.ParseValue()
	return err == nil && parsed.Format == encoding.FormatProtobuf &&
		strings.HasSuffix(parsed.GVK.Kind, "WebhookConfiguration") && native.EmptyBundle(parsed)
}

// differ reports whether the field at a path differs for a server.
func differ(before, after map[string]any, path ...string) bool {
	only := func(content map[string]any) map[string]any {
		out := map[string]any{}
		if value, is, _ := unstructured.NestedFieldNoCopy(content, path...); is {
			_ = unstructured.SetNestedField(out, value, path...)
		}
		return out
	}
	apiVersion, _ := after["apiVersion"].(string)
	kind, _ := after["kind"].(string)
	return !native.Same(schema.FromAPIVersionAndKind(apiVersion, kind), only(before), only(after))
}

// customChanged is specChanged for a custom resource: all fields count except the metadata and a
// status that is a subresource.
func customChanged(t *inspect.Type, before, after map[string]any) bool {
	return slices.ContainsFunc(differing(asRead(t, before), asRead(t, after)), func(field string) bool {
		switch field {
		case "apiVersion", "kind", "metadata":
			return false
		case "status":
			return !hasStatus(t, before)
		}
		return true
	})
}

// asRead returns a custom resource as a server reads it: without unknown fields, and with defaults.
func asRead(t *inspect.Type, content map[string]any) map[string]any {
	apiVersion, _ := content["apiVersion"].(string)
	version, err := t.CRD.Version(apiVersion[strings.LastIndex(apiVersion, "/")+1:])
	if err != nil {
		return content
	}
	read := runtime.DeepCopyJSON(content)
	version.Prune(read)
	if version.Default(read) != nil {
		return content
	}
	return read
}

func hasStatus(t *inspect.Type, content map[string]any) bool {
	apiVersion, _ := content["apiVersion"].(string)
	for _, version := range t.CRD.Object().Spec.Versions {
		if t.CRD.GroupKind().Group+"/"+version.Name == apiVersion {
			return version.Subresources != nil && version.Subresources.Status != nil
		}
	}
	return false
}

func growTemplate(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[templateGeneration].(string)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		annotations = maps.Clone(annotations)
		annotations[templateGeneration] = strconv.FormatInt(n+1, 10)
		metadata["annotations"] = annotations
	}
}
