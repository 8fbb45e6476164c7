package native

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestServed(t *testing.T) {
	for _, row := range []struct {
		apiVersion, kind string
		first, last      int
		minor            int    // a release
		serves           string // what the release serves instead
	}{
		{"v1", "Pod", 0, LinkedRelease, 29, "v1"},
		{"policy/v1beta1", "PodSecurityPolicy", 0, 24, 29, ""},
		{"extensions/v1beta1", "PodSecurityPolicy", 0, 15, 29, ""},
		{"policy/v1beta1", "PodDisruptionBudget", 5, 24, 29, "policy/v1"},
		{"batch/v1beta1", "CronJob", 8, 24, 29, "batch/v1"},
		{"autoscaling/v2beta1", "HorizontalPodAutoscaler", 0, 24, 29, "autoscaling/v2"},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", 0, 25, 37, "autoscaling/v2"},
		{"extensions/v1beta1", "Ingress", 1, 21, 29, "networking.k8s.io/v1"},
		{"networking.k8s.io/v1beta1", "Ingress", 14, 21, 29, "networking.k8s.io/v1"},
		{"extensions/v1beta1", "Deployment", 1, 15, 29, "apps/v1"},
		{"storage.k8s.io/v1alpha1", "CSIStorageCapacity", 19, 23, 29, "storage.k8s.io/v1"},
		{"flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", 26, 31, 32, "flowcontrol.apiserver.k8s.io/v1"},
		{"rbac.authorization.k8s.io/v1alpha1", "Role", 0, 22, 29, "rbac.authorization.k8s.io/v1"},
		{"resource.k8s.io/v1", "ResourceClaim", 34, LinkedRelease, 32, "resource.k8s.io/v1beta1"},
		{"resource.k8s.io/v1", "ResourceClaim", 34, LinkedRelease, 31, "resource.k8s.io/v1alpha3"},
		{"apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 0, 21, 29, "apiextensions.k8s.io/v1"},
		{"authorization.k8s.io/v1beta1", "SubjectAccessReview", 2, 21, 29, "authorization.k8s.io/v1"},
		{"example.com/v1", "Widget", 0, 0, 29, ""},
	} {
		gvk := schema.FromAPIVersionAndKind(row.apiVersion, row.kind)
		first, last := Serving(gvk)
		require.Equal(t, [2]int{row.first, row.last}, [2]int{first, last}, Name(gvk))
		require.Equal(t, row.last >= row.minor && row.first <= row.minor, ServedBy(gvk, row.minor), Name(gvk))
		serves, is := Replacement(gvk, row.minor)
		require.Equal(t, row.serves, serves.GroupVersion().String(), Name(gvk))
		require.Equal(t, is, row.serves != "", Name(gvk))
	}
}

func TestGroupServedBy(t *testing.T) {
	for _, row := range []struct {
		group         string
		minor         int
		served, known bool
	}{
		{"", 29, true, true}, {"authorization.k8s.io", 37, true, true}, {"extensions", 29, false, true},
		{"settings.k8s.io", 29, false, true}, {"lifecycle.k8s.io", 36, false, true},
		{"lifecycle.k8s.io", 37, true, true}, {"example.com", 37, false, false},
	} {
		served, known := GroupServedBy(row.group, row.minor)
		require.Equal(t, [2]bool{row.served, row.known}, [2]bool{served, known}, row.group)
	}
}
