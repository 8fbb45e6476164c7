package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// errLossy is returned for an object with fields unknown to the requested version.
var errLossy = errors.New("it has fields that the version lacks")

// convert converts a stored object to a version, in place: a custom resource according to its
// CustomResourceDefinition, a built-in kind only if no field is lost.
func (r *resource) convert(content map[string]any, version string) error {
	if r.CRD != nil {
		if _, err := r.CRD.Begin(content); err != nil {
			return err
		}
		_, err := r.CRD.Convert(content, version)
		return err
	}
	from, to := content["apiVersion"], r.gvk(version)
	if from == to.GroupVersion().String() || r.Resource == apiServices() {
		return nil
	}
	content["apiVersion"] = to.GroupVersion().String()
	if r.Resource.Group == "events.k8s.io" && from == "v1" {
		eventOfGroup(content)
		return nil
	}
	if err := fits(content, to); err != nil {
		return fmt.Errorf("stored as %v, requested as %s: %w", from, to.GroupVersion(), err)
	}
	return nil
}

// fits returns an error if the Go type of a kind lacks a field of the object.
func fits(content map[string]any, gvk schema.GroupVersionKind) error {
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, typed, true); err != nil {
		return errLossy // the text may quote a value
	}
	return nil
}

// eventFields maps the fields of core Events to their names in events.k8s.io (kube-apiserver's
// pkg/apis/events/v1/conversion.go).
func eventFields() map[string]string {
	return map[string]string{
		"message": "note", "involvedObject": "regarding", "source": "deprecatedSource",
		"firstTimestamp": "deprecatedFirstTimestamp",
		"lastTimestamp":  "deprecatedLastTimestamp", "count": "deprecatedCount",
		"reportingComponent": "reportingController",
	}
}

// eventOfGroup converts a stored core Event to events.k8s.io.
func eventOfGroup(content map[string]any) {
	for old, name := range eventFields() {
		if value, has := content[old]; has {
			delete(content, old)
			content[name] = value
		}
	}
	for _, name := range []string{"reportingController", "reportingInstance"} {
		if content[name] == "" {
			delete(content, name)
		}
	}
}

// coreEvent converts an Event of events.k8s.io to the form for the columns of Events.
func coreEvent(content map[string]any) map[string]any {
	event := maps.Clone(content)
	for name, new := range eventFields() {
		event[name] = content[new]
	}
	return event
}

// encodeRedacted encodes redacted values in base64, which clients expect in data of a Secret and in
// binaryData of a ConfigMap.
func encodeRedacted(content map[string]any) {
	for kind, field := range map[string]string{"Secret": "data", "ConfigMap": "binaryData"} {
		data, isMap := content[field].(map[string]any)
		if !isMap || content["kind"] != kind || content["apiVersion"] != "v1" {
			continue
		}
		for name, value := range data {
			if text, isText := value.(string); isText && strings.HasPrefix(text, "<redacted") {
				data[name] = base64.StdEncoding.EncodeToString([]byte(text))
			}
		}
	}
}
