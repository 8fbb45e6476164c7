package calico

import (
	"math"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The two groups, each with its only version.
const (
	groupV1      = "crd.projectcalico.org"
	groupV3      = "projectcalico.org"
	apiVersionV1 = groupV1 + "/v1"
	apiVersionV3 = groupV3 + "/v3"
)

// nameRule is the rule that derives the v3 name of a kind from the v1 record.
type nameRule int

const (
	nameStored nameRule = iota // the name in the metadata annotation, else the stored name
	namePolicy                 // like nameStored, but "default." is stripped if the annotation has no name
	nameBlock                  // the dashed, masked CIDR
	nameHandle                 // the lower-cased handle ID
)

// kind is a Calico kind with its v1 and v3 names.
type kind struct {
	Kind, Plural     string // in projectcalico.org/v3
	V1Kind, V1Plural string // in crd.projectcalico.org/v1
	Namespaced       bool   // in both groups
	Status           bool   // its CRDs have a status subresource
	Name             nameRule
	order            int // of writing
}

// v1 returns the resource under which v1 records are stored.
func (k *kind) v1() schema.GroupResource {
	return schema.GroupResource{Group: groupV1, Resource: k.V1Plural}
}

// v3 returns the resource under which v3 records are stored.
func (k *kind) v3() schema.GroupResource {
	return schema.GroupResource{Group: groupV3, Resource: k.Plural}
}

const kindClusterInformation = "ClusterInformation"

// kinds lists all 22 kinds: the 21 migrated by the live controller, in its order, then
// ClusterInformation, which the controller writes separately at the end.
var kinds = sync.OnceValue(func() kindSet {
	all := kindSet{
		{Kind: "Tier", Plural: "tiers", Status: true},
		{Kind: "FelixConfiguration", Plural: "felixconfigurations"},
		{Kind: "BGPConfiguration", Plural: "bgpconfigurations"},
		{Kind: "KubeControllersConfiguration", Plural: "kubecontrollersconfigurations", Status: true},
		{Kind: "IPPool", Plural: "ippools", Status: true},
		{Kind: "IPReservation", Plural: "ipreservations"},
		{Kind: "BGPPeer", Plural: "bgppeers"},
		{Kind: "BGPFilter", Plural: "bgpfilters"},
		{Kind: "GlobalNetworkPolicy", Plural: "globalnetworkpolicies", Name: namePolicy},
		{Kind: "NetworkPolicy", Plural: "networkpolicies", Name: namePolicy, Namespaced: true},
		{Kind: "StagedGlobalNetworkPolicy", Plural: "stagedglobalnetworkpolicies", Name: namePolicy},
		{Kind: "StagedNetworkPolicy", Plural: "stagednetworkpolicies", Name: namePolicy, Namespaced: true},
		{Kind: "StagedKubernetesNetworkPolicy", Plural: "stagedkubernetesnetworkpolicies", Namespaced: true},
		{Kind: "HostEndpoint", Plural: "hostendpoints"},
		{Kind: "GlobalNetworkSet", Plural: "globalnetworksets"},
		{Kind: "NetworkSet", Plural: "networksets", Namespaced: true},
		{Kind: "IPAMConfiguration", Plural: "ipamconfigurations", V1Kind: "IPAMConfig", V1Plural: "ipamconfigs"},
		{Kind: "BlockAffinity", Plural: "blockaffinities"},
		{Kind: "IPAMBlock", Plural: "ipamblocks", Name: nameBlock},
		{Kind: "IPAMHandle", Plural: "ipamhandles", Name: nameHandle},
		{Kind: "CalicoNodeStatus", Plural: "caliconodestatuses", Status: true},
		{Kind: kindClusterInformation, Plural: "clusterinformations"},
	}
	for i, k := range all {
		k.order = i
		if k.V1Kind == "" {
			k.V1Kind, k.V1Plural = k.Kind, k.Plural
		}
	}
	all[len(all)-1].order = math.MaxInt32 // after generic kinds
	return all
})

// kindSet holds the kinds of a run, in the order of writing.
type kindSet []*kind

// with inserts generic kinds before ClusterInformation.
func (s kindSet) with(generic kindSet) kindSet {
	last := len(s) - 1
	for i, k := range generic {
		k.order = last + i
	}
	return slices.Concat(s[:last], generic, s[last:])
}

// ofV1 finds a kind by its plural in crd.projectcalico.org.
func (s kindSet) ofV1(plural string) (*kind, bool) {
	return s.find(func(k *kind) bool { return k.V1Plural == plural })
}

// ofV3 finds a kind by its plural in projectcalico.org.
func (s kindSet) ofV3(plural string) (*kind, bool) {
	return s.find(func(k *kind) bool { return k.Plural == plural })
}

// called finds a kind by its name in either group.
func (s kindSet) called(name string) (*kind, bool) {
	return s.find(func(k *kind) bool { return k.Kind == name || k.V1Kind == name })
}

func (s kindSet) find(is func(*kind) bool) (*kind, bool) {
	if i := slices.IndexFunc(s, is); i >= 0 {
		return s[i], true
	}
	return nil, false
}

// genericKind derives a kind from its CRDs. Scope and subresources of the v1 CRD are required of
// the v3 CRD.
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
