package patch

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// like returns a value of the object's Go type, whose tags say how a strategic patch merges lists.
// Of a kind that this build does not know it has the metadata.
func like(o *inspect.Object) any {
	apiVersion, _ := o.Content["apiVersion"].(string)
	kind, _ := o.Content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	if known, err := scheme.Scheme.New(gvk); err == nil {
		return known
	}
	switch gvk.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return &apiextensionsv1.CustomResourceDefinition{}
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return &native.APIService{}
	}
	return &metav1.PartialObjectMetadata{}
}
