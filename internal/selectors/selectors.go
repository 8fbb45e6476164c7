// Package selectors reads which objects a command line selects: TYPE and names, labels, and the
// fields by which objects of each type are selected.
package selectors

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/etcdshift/etcdshift/inspect"
)

// builtin are the fields that select objects of built-in kinds beside metadata.name and
// metadata.namespace, as kube-apiserver has them (pkg/apis/*/v1/conversion.go).
func builtin() map[string]string {
	const event = "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion " +
		"involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
	return map[string]string{
		"pods": "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP " +
			"status.nominatedNodeName",
		"events":                         event,
		"events.events.k8s.io":           strings.NewReplacer("involvedObject", "regarding", "Component", "Controller", " source", "").Replace(event),
		"nodes":                          "spec.unschedulable",
		"namespaces":                     "status.phase",
		"secrets":                        "type",
		"services":                       "spec.clusterIP spec.type",
		"replicationcontrollers":         "status.replicas",
		"jobs.batch":                     "status.successful",
		"resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
		"certificatesigningrequests.certificates.k8s.io": "spec.signerName",
		"clustertrustbundles.certificates.k8s.io":        "spec.signerName",
		"podcertificaterequests.certificates.k8s.io":     "spec.signerName spec.nodeName",
	}
}

// Fields returns the fields that select objects of a type at a version; "" for any.
func Fields(t *inspect.Type, version string) []string {
	out := []string{"metadata.name", "metadata.namespace"}
	if t.CRD == nil {
		return append(out, strings.Fields(builtin()[t.Name()])...)
	}
	for _, v := range t.CRD.Object().Spec.Versions {
		for _, f := range v.SelectableFields {
			if name := strings.TrimPrefix(f.JSONPath, "."); (version == "" || v.Name == version) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Values are the values of an object by which a selector selects it.
func Values(selector fields.Selector, content map[string]any) fields.Set {
	set := fields.Set{}
	for _, r := range selector.Requirements() {
		path := strings.Split(r.Field, ".")
		switch r.Field {
		case "source": // of an Event: the component
			path = []string{"source", "component"}
		case "status.successful": // of a Job: its older name
			path = []string{"status", "succeeded"}
		}
		value, has, _ := unstructured.NestedFieldNoCopy(content, path...)
		switch {
		case has && value != nil:
			set[r.Field] = fmt.Sprint(value)
		case r.Field == "spec.unschedulable" || r.Field == "spec.hostNetwork":
			set[r.Field] = "false" // a server writes no false
		case r.Field == "status.successful" || r.Field == "status.replicas":
			set[r.Field] = "0"
		}
	}
	return set
}
