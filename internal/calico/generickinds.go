package calico

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/transform"
)

// findKinds finds the kinds of the snapshot: those of Calico Open Source, and each other whose CRD
// is in both groups under one plural, such as the kinds of Calico Enterprise. Metadata, UID and
// owners of its records change as those of other kinds; the spec stays.
func (s *crdSet) findKinds(shipped map[string]*schema.CRD) {
	var generic kindSet
	for _, plural := range s.old {
		_, ofV1 := kinds().ofV1(plural)
		if _, ofV3 := kinds().ofV3(plural); ofV1 || ofV3 {
			continue // a plural of v3 alone has a record of another plural
		}
		v1, v3 := s.definition(plural, groupV1), s.definition(plural, groupV3)
		if v3 == nil {
			v3 = shipped[plural]
		}
		if v1 != nil && v3 != nil {
			generic = append(generic, genericKind(plural, v1.Object(), v3.Object()))
		}
	}
	s.kinds = kinds().with(generic)
	for _, k := range generic {
		for range s.Live(s.Keys.Dir(k.v1())) {
			s.Raise(string(s.key(k.Plural, groupV3)), codeGenericKind.Because("%s is migrated as its CRDs say", k.Kind))
			break
		}
	}
}

// definition is the CRD of a resource; nil for none, and for one that cannot be read, which is
// reported.
func (s *crdSet) definition(plural, group string) *schema.CRD {
	key := s.key(plural, group)
	entry := s.Get(key)
	if entry == nil {
		return nil
	}
	crd, err := schema.ParseCRD(entry.Value)
	if err != nil {
		s.Raise(string(key), transform.Unreadable(err))
		return nil
	}
	return crd
}

// genericKind is a kind as its CRDs define it. The v1 CRD says what the v3 CRD must have.
func genericKind(plural string, v1, v3 *apiextensionsv1.CustomResourceDefinition) *kind {
	k := &kind{
		Kind: v3.Spec.Names.Kind, Plural: plural, V1Kind: v1.Spec.Names.Kind, V1Plural: plural,
		Namespaced: v1.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	for _, version := range v1.Spec.Versions {
		if version.Name == "v1" && version.Subresources != nil {
			k.Status = version.Subresources.Status != nil
		}
	}
	return k
}
