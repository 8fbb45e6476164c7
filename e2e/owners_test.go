package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource describes a kind, from discovery.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
	listed     bool
	updated    bool
}

// kinds returns all kinds served by the API server, in all versions.
func (c *cluster) kinds(t testing.TB) map[schema.GroupVersionKind]resource {
	t.Helper()
	_, lists, err := c.discovery.ServerGroupsAndResources()
	require.NoError(t, err)
	out := make(map[schema.GroupVersionKind]resource)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue // a subresource
			}
			out[gv.WithKind(r.Kind)] = resource{
				GroupVersionResource: gv.WithResource(r.Name), namespaced: r.Namespaced,
				listed: slices.Contains(r.Verbs, "list"), updated: slices.Contains(r.Verbs, "update"),
			}
		}
	}
	return out
}

// owned is an owner reference in the cluster.
type owned struct {
	object    string // "resource namespace/name"
	namespace string
	owner     metav1.OwnerReference
}

func (o owned) String() string {
	return fmt.Sprintf("%s: %s %s %s", o.object, o.owner.APIVersion, o.owner.Kind, o.owner.Name)
}

// owners returns every owner reference of every listable object.
func (c *cluster) owners(t testing.TB, kinds map[schema.GroupVersionKind]resource) []owned {
	t.Helper()
	var out []owned
	for _, r := range kinds {
		if !r.listed {
			continue
		}
		list, err := c.metadata.Resource(r.GroupVersionResource).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, r)
		for _, obj := range list.Items {
			for _, owner := range obj.OwnerReferences {
				name := r.GroupResource().String() + " " + obj.Namespace + "/" + obj.Name
				out = append(out, owned{object: name, namespace: obj.Namespace, owner: owner})
			}
		}
	}
	return out
}

// requireOwners requires that every owner reference refers to a live object with its name and UID.
// The recorded references are included: of native and foreign objects, to a renamed policy, and
// from the old group.
func (c *cluster) requireOwners(t testing.TB) {
	t.Helper()
	kinds, seen := c.kinds(t), []string{}
	for _, o := range c.owners(t, kinds) {
		r, served := kinds[schema.FromAPIVersionAndKind(o.owner.APIVersion, o.owner.Kind)]
		require.True(t, served, "%s: nothing serves this kind", o)
		namespace := o.namespace
		if !r.namespaced {
			namespace = ""
		}
		owner, err := c.metadata.Resource(r.GroupVersionResource).Namespace(namespace).Get(context.Background(),
			o.owner.Name, metav1.GetOptions{})
		require.NoError(t, err, "%s", o)
		require.Equal(t, owner.UID, o.owner.UID, "%s", o)
		seen = append(seen, o.String())
	}
	require.Subset(t, seen, []string{
		"configmaps team-a/owned-by-gnp: projectcalico.org/v3 GlobalNetworkPolicy allow-dns",
		"configmaps team-a/owned-by-legacy-np: projectcalico.org/v3 NetworkPolicy legacy-np",
		"configmaps team-a/owned-by-v1-raw: projectcalico.org/v3 GlobalNetworkSet threat-feed",
		"secrets team-a/owned-by-ippool: projectcalico.org/v3 IPPool default-ipv4-ippool",
		"networkpolicies.networking.k8s.io team-b/owned-by-tier: projectcalico.org/v3 Tier security",
		"widgets.example.com team-a/owned-by-np: projectcalico.org/v3 NetworkPolicy allow-web",
		"globalnetworksets.projectcalico.org /raw-no-annotation: projectcalico.org/v3 Tier security",
	})
}
