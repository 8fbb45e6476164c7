package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
)

// Selector selects objects by --selector and --field-selector.
type Selector struct {
	Labels labels.Selector
	Fields fields.Selector
}

// Everything selects all objects.
func Everything() Selector { return Selector{labels.Everything(), fields.Everything()} }

// Empty reports whether the selector selects all objects.
func (s Selector) Empty() bool { return s.Labels.Empty() && s.Fields.Empty() }

// ParseSelector reads the texts of --selector and --field-selector. An error names the flag.
func ParseSelector(selector, fieldSelector string) (s Selector, err error) {
	if s.Labels, err = labels.Parse(selector); err != nil {
		return s, fmt.Errorf("--selector: %w", err)
	}
	if s.Fields, err = fields.ParseSelector(fieldSelector); err != nil {
		return s, fmt.Errorf("--field-selector: %w", err)
	}
	return s, nil
}

// Check refuses fields by which a server would not select objects of a type.
func (s Selector) Check(t *inspect.Type) error {
	takes := SelectableFields(t, "")
	for _, r := range s.Fields.Requirements() {
		if !strings.HasPrefix(r.Field, "metadata.") && !slices.Contains(takes, r.Field) {
			return fmt.Errorf("--field-selector: no field %q selects %s; it takes %s", r.Field, t.Name(), strings.Join(takes, ", "))
		}
	}
	return nil
}

// Fits reports whether the selector selects an object.
func (s Selector) Fits(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return s.Labels.Matches(labels.Set(u.GetLabels())) && s.Fields.Matches(FieldValues(s.Fields, content))
}

// builtinFields are the fields that select objects of built-in kinds beside metadata.name and
// metadata.namespace, as kube-apiserver has them (pkg/apis/*/v1/conversion.go).
func builtinFields() map[string]string {
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

// SelectableFields returns the fields that select objects of a type at a version; "" for any.
func SelectableFields(t *inspect.Type, version string) []string {
	out := []string{"metadata.name", "metadata.namespace"}
	if t.CRD == nil {
		return append(out, strings.Fields(builtinFields()[t.Name()])...)
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

// FieldValues are the values of an object by which a selector selects it.
func FieldValues(selector fields.Selector, content map[string]any) fields.Set {
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
