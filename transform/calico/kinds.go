package calico

import "k8s.io/apimachinery/pkg/runtime/schema"

// The two groups, and the one version each of them has.
const (
	groupV1      = "crd.projectcalico.org"
	groupV3      = "projectcalico.org"
	apiVersionV1 = groupV1 + "/v1"
	apiVersionV3 = groupV3 + "/v3"
)

// nameRule says how the v3 name of a kind follows from its v1 record.
type nameRule int

const (
	nameStored nameRule = iota // the name in the metadata annotation, else the stored one
	namePolicy                 // as nameStored, but "default." is stripped where the annotation has no name
	nameBlock                  // the dashed, masked CIDR
	nameHandle                 // the lower-cased handle id
)

// kind is one Calico kind in its two forms.
type kind struct {
	Kind, Plural     string // in projectcalico.org/v3
	V1Kind, V1Plural string // in crd.projectcalico.org/v1
	Namespaced       bool   // in both
	Status           bool   // its CRDs have a status subresource
	Name             nameRule
}

// v1 is the resource the kind is stored under before the migration.
func (k kind) v1() schema.GroupResource {
	return schema.GroupResource{Group: groupV1, Resource: k.V1Plural}
}

// v3 is the resource the kind is stored under after the migration.
func (k kind) v3() schema.GroupResource {
	return schema.GroupResource{Group: groupV3, Resource: k.Plural}
}

const kindClusterInformation = "ClusterInformation"

// kinds lists all 22 kinds: the 21 the live controller migrates in the order it does, then ClusterInformation, which
// it writes by hand when all others are there.
func kinds() []kind {
	same := func(name, plural string) kind {
		return kind{Kind: name, Plural: plural, V1Kind: name, V1Plural: plural}
	}
	withStatus := func(k kind) kind { k.Status = true; return k }
	inNamespace := func(k kind) kind { k.Namespaced = true; return k }
	named := func(k kind, rule nameRule) kind { k.Name = rule; return k }
	return []kind{
		withStatus(same("Tier", "tiers")),
		same("FelixConfiguration", "felixconfigurations"),
		same("BGPConfiguration", "bgpconfigurations"),
		withStatus(same("KubeControllersConfiguration", "kubecontrollersconfigurations")),
		withStatus(same("IPPool", "ippools")),
		same("IPReservation", "ipreservations"),
		same("BGPPeer", "bgppeers"),
		same("BGPFilter", "bgpfilters"),
		named(same("GlobalNetworkPolicy", "globalnetworkpolicies"), namePolicy),
		inNamespace(named(same("NetworkPolicy", "networkpolicies"), namePolicy)),
		named(same("StagedGlobalNetworkPolicy", "stagedglobalnetworkpolicies"), namePolicy),
		inNamespace(named(same("StagedNetworkPolicy", "stagednetworkpolicies"), namePolicy)),
		inNamespace(same("StagedKubernetesNetworkPolicy", "stagedkubernetesnetworkpolicies")),
		same("HostEndpoint", "hostendpoints"),
		same("GlobalNetworkSet", "globalnetworksets"),
		inNamespace(same("NetworkSet", "networksets")),
		{Kind: "IPAMConfiguration", Plural: "ipamconfigurations", V1Kind: "IPAMConfig", V1Plural: "ipamconfigs"},
		same("BlockAffinity", "blockaffinities"),
		named(same("IPAMBlock", "ipamblocks"), nameBlock),
		named(same("IPAMHandle", "ipamhandles"), nameHandle),
		withStatus(same("CalicoNodeStatus", "caliconodestatuses")),
		same(kindClusterInformation, "clusterinformations"),
	}
}

// kindOfV1 finds the kind stored as plural in crd.projectcalico.org.
func kindOfV1(plural string) (kind, bool) {
	for _, k := range kinds() {
		if k.V1Plural == plural {
			return k, true
		}
	}
	return kind{}, false
}

// kindOfV3 finds the kind stored as plural in projectcalico.org.
func kindOfV3(plural string) (kind, bool) {
	for _, k := range kinds() {
		if k.Plural == plural {
			return k, true
		}
	}
	return kind{}, false
}
