package keys

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCalicoSnapshot parses every key of a recorded cluster (Kubernetes 1.36, Calico with both API
// groups).
func TestCalicoSnapshot(t *testing.T) {
	data, err := os.ReadFile("testdata/calico-keys.txt")
	require.NoError(t, err)
	layout := Kubernetes{Prefix: "/registry"}
	var unknown []string
	count := map[string]int{}
	prefixes := map[string]int{}
	for line := range strings.Lines(string(data)) {
		k := strings.TrimSuffix(line, "\n")
		if prefix, ok := detectPrefix([]byte(k)); ok {
			prefixes[prefix]++
		}
		key, err := layout.Parse([]byte(k))
		if err != nil {
			require.ErrorIs(t, err, ErrUnknownKey)
			unknown = append(unknown, k)
			continue
		}
		require.Equal(t, k, string(layout.Format(key)))
		count[key.Resource.String()]++
		if _, known := kubernetesTable.byResource[key.Resource]; !known {
			require.Contains(t, key.Resource.Group, ".", "a built-in that the table lacks: %s", k)
		}
	}
	require.Empty(t, unknown)
	require.Equal(t, calicoCount(), count)
	require.Equal(t, map[string]int{"/registry": count["customresourcedefinitions.apiextensions.k8s.io"] +
		count["apiservices.apiregistration.k8s.io"] + 4}, prefixes)
}

// calicoCount holds the number of keys of each resource in testdata/calico-keys.txt, counted with
// awk.
func calicoCount() map[string]int {
	return map[string]int{
		"apiservices.apiregistration.k8s.io":                           28,
		"bgpconfigurations.crd.projectcalico.org":                      2,
		"bgpconfigurations.projectcalico.org":                          2,
		"bgpfilters.crd.projectcalico.org":                             1,
		"bgpfilters.projectcalico.org":                                 1,
		"bgppeers.crd.projectcalico.org":                               3,
		"bgppeers.projectcalico.org":                                   3,
		"blockaffinities.crd.projectcalico.org":                        9,
		"blockaffinities.projectcalico.org":                            8,
		"caliconodestatuses.crd.projectcalico.org":                     1,
		"caliconodestatuses.projectcalico.org":                         1,
		"clusterinformations.crd.projectcalico.org":                    1,
		"clusterinformations.projectcalico.org":                        1,
		"clusterrolebindings.rbac.authorization.k8s.io":                50,
		"clusterroles.rbac.authorization.k8s.io":                       69,
		"configmaps":                                                   6,
		"customresourcedefinitions.apiextensions.k8s.io":               48,
		"daemonsets.apps":                                              1,
		"datastoremigrations.migration.projectcalico.org":              1,
		"felixconfigurations.crd.projectcalico.org":                    3,
		"felixconfigurations.projectcalico.org":                        3,
		"flowschemas.flowcontrol.apiserver.k8s.io":                     11,
		"gadgets.example.com":                                          2,
		"globalnetworkpolicies.crd.projectcalico.org":                  6,
		"globalnetworkpolicies.projectcalico.org":                      6,
		"globalnetworksets.crd.projectcalico.org":                      2,
		"globalnetworksets.projectcalico.org":                          2,
		"hostendpoints.crd.projectcalico.org":                          2,
		"hostendpoints.projectcalico.org":                              2,
		"ipaddresses.networking.k8s.io":                                1,
		"ipamblocks.crd.projectcalico.org":                             7,
		"ipamblocks.projectcalico.org":                                 7,
		"ipamconfigs.crd.projectcalico.org":                            1,
		"ipamconfigurations.projectcalico.org":                         1,
		"ipamhandles.crd.projectcalico.org":                            5,
		"ipamhandles.projectcalico.org":                                4,
		"ippools.crd.projectcalico.org":                                4,
		"ippools.projectcalico.org":                                    4,
		"ipreservations.crd.projectcalico.org":                         1,
		"ipreservations.projectcalico.org":                             1,
		"kubecontrollersconfigurations.crd.projectcalico.org":          1,
		"kubecontrollersconfigurations.projectcalico.org":              1,
		"leases.coordination.k8s.io":                                   1,
		"masterleases":                                                 1,
		"mutatingadmissionpolicies.admissionregistration.k8s.io":       2,
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io": 2,
		"namespaces":                                               7,
		"networkpolicies.crd.projectcalico.org":                    5,
		"networkpolicies.networking.k8s.io":                        2,
		"networkpolicies.projectcalico.org":                        5,
		"networksets.crd.projectcalico.org":                        2,
		"networksets.projectcalico.org":                            2,
		"nodes":                                                    2,
		"peerserverleases":                                         1,
		"priorityclasses.scheduling.k8s.io":                        2,
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": 8,
		"ranges":                                 1,
		"rolebindings.rbac.authorization.k8s.io": 7,
		"roles.rbac.authorization.k8s.io":        7,
		"secrets":                                1,
		"serviceaccounts":                        1,
		"servicecidrs.networking.k8s.io":         1,
		"services":                               1,
		"stagedglobalnetworkpolicies.crd.projectcalico.org":              2,
		"stagedglobalnetworkpolicies.projectcalico.org":                  2,
		"stagedkubernetesnetworkpolicies.crd.projectcalico.org":          1,
		"stagedkubernetesnetworkpolicies.projectcalico.org":              1,
		"stagednetworkpolicies.crd.projectcalico.org":                    1,
		"stagednetworkpolicies.projectcalico.org":                        1,
		"tiers.crd.projectcalico.org":                                    5,
		"tiers.projectcalico.org":                                        5,
		"validatingadmissionpolicies.admissionregistration.k8s.io":       1,
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": 1,
		"widgets.example.com":                                            2,
	}
}
