package calico

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cniTemplate is the CNI configuration in the ConfigMap of a manifest install: JSON except for the
// placeholders.
const cniTemplate = `{
  "name": "k8s-pod-network",
  "cniVersion": "0.3.1",
  "plugins": [
    {
      "type": "calico",
      "nodename": "__KUBERNETES_NODE_NAME__",
      "mtu": __CNI_MTU__,
      "ipam": {
          "type": "calico-ipam"
      },
      "calico_api_group" :  "crd.projectcalico.org/v1",
      "kubernetes": {
          "kubeconfig": "__KUBECONFIG_FILEPATH__"
      }
    },
    {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}
  ]
}`

func TestUnpinAPIGroup(t *testing.T) {
	out, replaced := unpinAPIGroup(cniTemplate)
	require.Equal(t, []string{"crd.projectcalico.org/v1"}, replaced)
	require.Equal(t, strings.Replace(cniTemplate, "crd.projectcalico.org/v1", "projectcalico.org/v3", 1), out)

	again, replaced := unpinAPIGroup(out)
	require.Empty(t, replaced)
	require.Equal(t, out, again)
}

func TestUnpinAPIGroupLeaves(t *testing.T) {
	for _, text := range []string{
		"",
		`{"calico_api_group": ""}`,
		`{"calico_api_group": "projectcalico.org/v3"}`,
		`{"calico_api_group": "__CALICO_API_GROUP__"}`,
		`{"calico_api_group": __CALICO_API_GROUP__}`,
		`{"calico_api_group": null, "x": "crd.projectcalico.org/v1"}`,
		`{"note": "\"calico_api_group\": \"crd.projectcalico.org/v1\""}`, // text inside a string
		`{"list": ["calico_api_group", "crd.projectcalico.org/v1"]}`,
		`{"calico_api_group": "crd.projectcalico.org/v1`, // no end
		`{"calico_api_group": "\`,
		`{"not_calico_api_group": "crd.projectcalico.org/v1"}`,
	} {
		out, replaced := unpinAPIGroup(text)
		require.Empty(t, replaced, "%q", text)
		require.Equal(t, text, out)
	}
}

func TestUnpinAPIGroupEach(t *testing.T) {
	out, replaced := unpinAPIGroup(`[{"calico_api_group":"a"},{"calico_api_group":"b"}]`)
	require.Equal(t, []string{"a", "b"}, replaced)
	require.Equal(t, `[{"calico_api_group":"projectcalico.org/v3"},{"calico_api_group":"projectcalico.org/v3"}]`, out)
}

// FuzzUnpinAPIGroup: for any text, only the replaced values differ, and a second edit replaces
// nothing.
func FuzzUnpinAPIGroup(f *testing.F) {
	f.Add(cniTemplate)
	f.Add(`{"calico_api_group":"a","x":"\\","calico_api_group":"b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, replaced := unpinAPIGroup(text)
		grown := 0
		for _, old := range replaced {
			grown += len(apiVersionV3) - len(old)
		}
		require.Len(t, out, len(text)+grown)
		again, more := unpinAPIGroup(out)
		require.Empty(t, more)
		require.Equal(t, out, again)
	})
}
