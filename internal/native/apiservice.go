package native

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// APIService has the used fields of apiregistration.k8s.io/v1; this module does not link the Go
// types. Its objects are stored as JSON.
type APIService struct {
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

// newObject returns an empty object of a kind, for decoding JSON.
func newObject(gvk schema.GroupVersionKind) (any, error) {
	if gvk.Group == "apiregistration.k8s.io" && gvk.Kind == "APIService" {
		return new(APIService), nil
	}
	return scheme.Scheme.New(gvk)
}
