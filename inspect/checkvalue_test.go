package inspect

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/keys"
)

// A value of one kind is not accepted under the key of another one: any pair of built-in kinds, and
// any of them below a folder of custom resources or of a resource that this build does not know.
func TestKindsUnderOtherKeys(t *testing.T) {
	all := Builtins()
	for _, of := range all {
		is := gvr.GroupVersionKind{Group: of.Resource.Group, Version: "v1", Kind: of.Kind}
		for _, under := range all {
			err := checkKind(keys.Key{Resource: under.Resource, Namespace: "a", Name: "a"}, is)
			require.Equal(t, of.Resource == under.Resource, err == nil, "%s under %s: %v", is, under.Resource, err)
		}
		for _, under := range []gvr.GroupResource{
			{Group: "h.example", Resource: "widgets"}, {Group: "apps.example.com", Resource: of.Resource.Resource},
			{Resource: "widgets"}, {Group: "apps", Resource: "widgets"},
		} {
			require.Error(t, checkKind(keys.Key{Resource: under, Namespace: "a", Name: "a"}, is), "%s under %s", is, under)
		}
	}
	for _, c := range []struct{ group, resource, apiVersion, kind string }{ // where groups differ, or the kind is not known
		{"", "events", "events.k8s.io/v1", "Event"}, {"apps", "deployments", "extensions/v1beta1", "Deployment"},
		{"networking.k8s.io", "ingresses", "extensions/v1beta1", "Ingress"}, {"", "masterleases", "v1", "Endpoints"}, {"", "ranges", "v1", "RangeAllocation"},
		{"h.example", "widgets", "h.example/v2", "Widget"}, {"", "widgets", "v1", "Widget"}, {"route.openshift.io", "routes", "route.openshift.io/v1", "Route"},
	} {
		is := gvr.FromAPIVersionAndKind(c.apiVersion, c.kind)
		require.NoError(t, checkKind(keys.Key{Resource: gvr.GroupResource{Group: c.group, Resource: c.resource}}, is), fmt.Sprint(c))
	}
}
