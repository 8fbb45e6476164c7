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

// Set is policies with their bindings, and other objects that may be their params.
type Set struct {
	Mutating           []*admission.MutatingAdmissionPolicy
	MutatingBindings   []*admission.MutatingAdmissionPolicyBinding
	Validating         []*admission.ValidatingAdmissionPolicy
	ValidatingBindings []*admission.ValidatingAdmissionPolicyBinding
	Others             []*unstructured.Unstructured
}

// Resources are the resources of policies and bindings.
func Resources() []schema.GroupResource {
	var all []schema.GroupResource
	for _, name := range []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	} {
		all = append(all, schema.GroupResource{Group: admission.GroupName, Resource: name})
	}
	return all
}

// Read adds the objects of a manifest: YAML documents or JSON, with lists. A policy or binding with
// a field that its type does not have is an error.
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
		return o.EachListItem(func(item runtime.Object) error { return s.add(item.(*unstructured.Unstructured).Object) })
	}
	if err := s.Add(o, true); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// Add adds an object. A policy or binding that the set has already is an error. strict refuses
// fields that its type does not have.
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
		return addTo(&s.Mutating, o, strict, func(p *admission.MutatingAdmissionPolicy) error { return checkMutating(&p.Spec) })
	case "MutatingAdmissionPolicyBinding":
		return addTo(&s.MutatingBindings, o, strict, func(b *admission.MutatingAdmissionPolicyBinding) error {
			setMatchDefaults(b.Spec.MatchResources)
			return checkParamRef(b.Spec.ParamRef)
		})
	case "ValidatingAdmissionPolicy":
		return addTo(&s.Validating, o, strict, func(p *admission.ValidatingAdmissionPolicy) error { return checkValidating(&p.Spec) })
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

// addTo adds an object as its type, with the defaults that complete sets, in the order of names.
func addTo[T any, P interface {
	*T
	metav1.Object
}](all *[]P, o *unstructured.Unstructured, strict bool, complete func(P) error) error {
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, strict); err != nil {
		return err
	}
	at, twice := slices.BinarySearchFunc(*all, o.GetName(), func(p P, name string) int { return cmp.Compare(p.GetName(), name) })
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

// Choose keeps the policies of these names and their bindings. It returns the names that no policy
// has.
func (s *Set) Choose(names []string) (missing []string) {
	for _, name := range names {
		is := func(p metav1.Object) bool { return p.GetName() == name }
		if !slices.ContainsFunc(s.Mutating, func(p *admission.MutatingAdmissionPolicy) bool { return is(p) }) &&
			!slices.ContainsFunc(s.Validating, func(p *admission.ValidatingAdmissionPolicy) bool { return is(p) }) {
			missing = append(missing, name)
		}
	}
	other := func(name string) bool { return !slices.Contains(names, name) }
	s.Mutating = slices.DeleteFunc(s.Mutating, func(p *admission.MutatingAdmissionPolicy) bool { return other(p.Name) })
	s.MutatingBindings = slices.DeleteFunc(s.MutatingBindings, func(b *admission.MutatingAdmissionPolicyBinding) bool { return other(b.Spec.PolicyName) })
	s.Validating = slices.DeleteFunc(s.Validating, func(p *admission.ValidatingAdmissionPolicy) bool { return other(p.Name) })
	s.ValidatingBindings = slices.DeleteFunc(s.ValidatingBindings, func(b *admission.ValidatingAdmissionPolicyBinding) bool { return other(b.Spec.PolicyName) })
	return missing
}
