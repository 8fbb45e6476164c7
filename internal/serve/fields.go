package serve

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectable are the fields that select objects of built-in kinds beside metadata.name and
// metadata.namespace, as kube-apiserver has them (pkg/apis/*/v1/conversion.go).
func selectable() map[string]string {
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
		"replicasets.apps":               "status.replicas",
		"jobs.batch":                     "status.successful",
		"resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
		"certificatesigningrequests.certificates.k8s.io": "spec.signerName",
		"clustertrustbundles.certificates.k8s.io":        "spec.signerName",
		"podcertificaterequests.certificates.k8s.io":     "spec.signerName spec.nodeName",
	}
}

// selects reports whether a field selects objects of the resource at a version.
func (r *resource) selects(version, name string) bool {
	if name == "metadata.name" || name == "metadata.namespace" {
		return true
	}
	if r.CRD == nil {
		return strings.Contains(" "+selectable()[r.Name()]+" ", " "+name+" ")
	}
	for _, v := range r.CRD.Object().Spec.Versions {
		for _, f := range v.SelectableFields {
			if v.Name == version && f.JSONPath == "."+name {
				return true
			}
		}
	}
	return false
}

// fieldLabel is the conversion of a field selector: fields have the same name at each version.
func (r *resource) fieldLabel(version string) runtime.FieldLabelConversionFunc {
	return func(label, value string) (string, string, error) {
		if !r.selects(version, label) {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return label, value, nil
	}
}

// fieldsOf are the values of an object by which a selector selects it.
func fieldsOf(selector fields.Selector, content map[string]any) fields.Set {
	set := fields.Set{}
	for _, r := range selector.Requirements() {
		path := strings.Split(r.Field, ".")
		if r.Field == "source" { // of an Event: the component
			path = []string{"source", "component"}
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
