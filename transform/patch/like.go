package patch

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/inspect"
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
		return &apiService{}
	}
	return &metav1.PartialObjectMetadata{}
}

// apiService has the fields of apiregistration.k8s.io/v1, of which this module has no Go types.
type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Port      int32  `json:"port"`
		} `json:"service"`
		Group                 string `json:"group"`
		Version               string `json:"version"`
		InsecureSkipTLSVerify bool   `json:"insecureSkipTLSVerify"`
		CABundle              []byte `json:"caBundle"`
		GroupPriorityMinimum  int32  `json:"groupPriorityMinimum"`
		VersionPriority       int32  `json:"versionPriority"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions" patchStrategy:"merge" patchMergeKey:"type"`
	} `json:"status"`
}
