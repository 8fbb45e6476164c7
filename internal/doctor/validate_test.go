package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestValidate: only --validate reports built-in objects that can be read but not updated.
func TestValidate(t *testing.T) {
	s := written(t, base(t), object("namespaces/team", "v1", "Namespace", ""),
		object("configmaps/team/sound", "v1", "ConfigMap", `},"data":{"a":"hunter2-data"}`),
		object("configmaps/team/odd", "v1", "ConfigMap", `},"data":{"a b":"hunter2-data"}`),
		object("pods/team/a", "v1", "Pod", `},"spec":{"nodeName":"n1","containers":[{"name":"a","image":"a:1"}]},`+
			`"status":{"hostIPs":[{"ip":"10.0.0.1"}]}`),
		object("leases/team/a", "coordination.k8s.io/v1", "Lease", `},"spec":{"leaseDurationSeconds":-5}`))
	require.Empty(t, examined(t, s, Options{}).Of(CodeUpdateRefused))
	found := examined(t, s, Options{Validate: true}).Of(CodeUpdateRefused)
	require.Len(t, found, 3)
	require.Equal(t, "/registry/configmaps/team/odd", found[0].Key)
	require.Contains(t, found[0].Reason, "every update is refused for data[a b] (")
	require.Contains(t, found[1].Reason, "every update is refused for spec.leaseDurationSeconds (must be greater than")
	require.Equal(t, "every update of its status is refused for status.hostIPs[0].ip (must be equal to `hostIP`)",
		found[2].Reason)
	for _, f := range found {
		require.NotContains(t, f.Reason, "hunter2")
	}
}

// TestValidateUnfit checks an object whose annotation no server converts.
func TestValidateUnfit(t *testing.T) {
	s := written(t, base(t), object("namespaces/team", "v1", "Namespace", ""),
		object("daemonsets/team/a", "apps/v1", "DaemonSet",
			`,"annotations":{"deprecated.daemonset.template.generation":"hunter2"}},"spec":{}`))
	require.Empty(t, examined(t, s, Options{}).Of(CodeUpdateRefused))
	found := examined(t, s, Options{Validate: true}).Of(CodeUpdateRefused)
	require.Len(t, found, 1)
	require.Equal(t, "its updates cannot be checked: it is no object of the kind", found[0].Reason)
}
