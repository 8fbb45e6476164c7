package calico

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindsAreTheLiveControllersList(t *testing.T) {
	all := kinds()
	require.Len(t, all, 22)
	require.Equal(t, "Tier", all[0].Kind, "tiers come first: policies name them")
	require.Equal(t, kindClusterInformation, all[21].Kind, "ClusterInformation says ready when all else is there")

	var namespaced, status, policies []string
	for _, k := range all {
		if k.Namespaced {
			namespaced = append(namespaced, k.Plural)
		}
		if k.Status {
			status = append(status, k.Plural)
		}
		if k.Name == namePolicy {
			policies = append(policies, k.Kind)
		}
		if k.Kind != "IPAMConfiguration" {
			require.Equal(t, k.Kind, k.V1Kind)
			require.Equal(t, k.Plural, k.V1Plural)
		}
	}
	require.Equal(t, []string{"networkpolicies", "stagednetworkpolicies", "stagedkubernetesnetworkpolicies",
		"networksets"}, namespaced)
	require.Equal(t, []string{"tiers", "kubecontrollersconfigurations", "ippools", "caliconodestatuses"}, status)
	require.Equal(t, []string{"GlobalNetworkPolicy", "NetworkPolicy", "StagedGlobalNetworkPolicy",
		"StagedNetworkPolicy"}, policies)
}

func TestKindOf(t *testing.T) {
	k, ok := kinds().ofV1("ipamconfigs")
	require.True(t, ok)
	require.Equal(t, "IPAMConfiguration", k.Kind)
	require.Equal(t, "ipamconfigurations.projectcalico.org", k.v3().String())
	require.Equal(t, "ipamconfigs.crd.projectcalico.org", k.v1().String())

	_, ok = kinds().ofV1("ipamconfigurations")
	require.False(t, ok, "the v3 plural is not a v1 one")
	_, ok = kinds().ofV3("ipamconfigs")
	require.False(t, ok)
	_, ok = kinds().ofV3("globalfelixconfigs")
	require.False(t, ok)
}
