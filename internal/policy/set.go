package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Set holds policies with their bindings, and possible params.
type Set struct {
	Mutating           []*admission.MutatingAdmissionPolicy
	MutatingBindings   []*admission.MutatingAdmissionPolicyBinding
	Validating         []*admission.ValidatingAdmissionPolicy
	ValidatingBindings []*admission.ValidatingAdmissionPolicyBinding
	Others             []*unstructured.Unstructured
}

// Resources returns the resources of policies and bindings.
func Resources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, name := range []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings",
	} {
		all = append(all, schema.GroupResource{Group: admission.GroupName, Resource: name})
	}
	return all
}

// Read adds the objects of a manifest: YAML documents or JSON, with lists. A policy or binding with
// an unknown field is an error.
func (s *Set) Read(manifest []byte) error {
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for n := 1; ; n++ {
		var content map[string]any
		switch err := documents.Decode(&content); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("document %d: %w", n, err)
		case len(content) == 0:
			continue
		}
		if err := s.add(content); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// add adds an object, or the objects of a list.
func (s *Set) add(content map[string]any) error {
	o := &unstructured.Unstructured{Object: content}
	if o.GetKind() == "" || o.GetAPIVersion() == "" {
		return errors.New("apiVersion and kind are missing")
	}
	if o.IsList() {
		return o.EachListItem(func(item runtime.Object) error {
			return s.add(item.(*unstructured.Unstructured).Object)
		})
	}
	if err := s.Add(o, true); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// Add adds an object. A duplicate policy or binding is an error. strict refuses unknown fields.
func (s *Set) Add(o *unstructured.Unstructured, strict bool) error {
	gvk := o.GroupVersionKind()
	if gvk.Group != admission.GroupName || !strings.Contains(gvk.Kind, "AdmissionPolicy") {
		s.Others = append(s.Others, o)
		return nil
	}
	if !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, gvk.Version) {
		return fmt.Errorf("version %s is not one of v1, v1beta1, v1alpha1", gvk.Version)
	}
	switch gvk.Kind {
	case "MutatingAdmissionPolicy":
		return addTo(&s.Mutating, o, strict,
			func(p *admission.MutatingAdmissionPolicy) error { return checkMutating(&p.Spec) })
	case "MutatingAdmissionPolicyBinding":
		return addTo(&s.MutatingBindings, o, strict, func(b *admission.MutatingAdmissionPolicyBinding) error {
			setMatchDefaults(b.Spec.MatchResources)
			return checkParamRef(b.Spec.ParamRef)
		})
	case "ValidatingAdmissionPolicy":
		return addTo(&s.Validating, o, strict,
			func(p *admission.ValidatingAdmissionPolicy) error { return checkValidating(&p.Spec) })
	case "ValidatingAdmissionPolicyBinding":
		return addTo(&s.ValidatingBindings, o, strict, func(b *admission.ValidatingAdmissionPolicyBinding) error {
			setMatchDefaults(b.Spec.MatchResources)
			if len(b.Spec.ValidationActions) == 0 {
				return errors.New("spec.validationActions is missing")
			}
			return checkParamRef(b.Spec.ParamRef)
		})
	}
	return fmt.Errorf("no such kind in %s", admission.GroupName)
}

// addTo adds an object as its type, with defaults set by complete, in the order of names.
func addTo[T any, P interface {
	*T
	metav1.Object
}](all *[]P, o *unstructured.Unstructured, strict bool, complete func(P) error) error {
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, strict); err != nil {
		return err
	}
	at, twice := slices.BinarySearchFunc(*all, o.GetName(),
		func(p P, name string) int { return cmp.Compare(p.GetName(), name) })
	switch {
	case o.GetName() == "":
		return errors.New("metadata.name is missing")
	case twice:
		return errors.New("it is given twice")
	}
	if err := complete(typed); err != nil {
		return err
	}
	*all = slices.Insert(*all, at, typed)
	return nil
}

// member is a policy or a binding of a set.
type member struct{ kind, name, policy string }

func (m member) String() string { return m.kind + " " + m.name }

func (m member) binds() bool { return strings.HasSuffix(m.kind, "Binding") }

// members lists the policies, and the bindings with the policies that they name.
func (s *Set) members() (all []member) {
	for _, p := range s.Mutating {
		all = append(all, member{Mutating, p.Name, ""})
	}
	for _, p := range s.Validating {
		all = append(all, member{Validating, p.Name, ""})
	}
	for _, b := range s.MutatingBindings {
		all = append(all, member{Mutating + "Binding", b.Name, b.Spec.PolicyName})
	}
	for _, b := range s.ValidatingBindings {
		all = append(all, member{Validating + "Binding", b.Name, b.Spec.PolicyName})
	}
	return all
}

// Choose keeps the named policies and their bindings. It returns the names without a policy.
func (s *Set) Choose(names []string) (missing []string) {
	all := s.members()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(m member) bool { return m.name == name && !m.binds() }) {
			missing = append(missing, name)
		}
	}
	s.Mutating, s.Validating = keepNamed(s.Mutating, names), keepNamed(s.Validating, names)
	s.MutatingBindings = slices.DeleteFunc(s.MutatingBindings, func(b *admission.MutatingAdmissionPolicyBinding) bool {
		return !slices.Contains(names, b.Spec.PolicyName)
	})
	s.ValidatingBindings = slices.DeleteFunc(s.ValidatingBindings,
		func(b *admission.ValidatingAdmissionPolicyBinding) bool {
			return !slices.Contains(names, b.Spec.PolicyName)
		})
	return missing
}

// keepNamed keeps the objects with these names.
func keepNamed[P metav1.Object](all []P, names []string) []P {
	return slices.DeleteFunc(all, func(p P) bool { return !slices.Contains(names, p.GetName()) })
}
