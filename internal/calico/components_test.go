package calico

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

func settingComponents(setAPIGroup bool) planFunc {
	return func(ctx context.Context, v *transform.View) error {
		found, err := findInstallation(storeOf(ctx, v))
		if err != nil {
			return err
		}
		return found.setComponents(setAPIGroup)
	}
}

// manifestInstall adds the content of kube-system from Calico's manifests, including the old API
// server.
func manifestInstall(t *testing.T, config string) *input {
	in := newInput(t)
	in.daemonSet(daemonSet("kube-system", "calico-node", podTemplate("calico-node",
		"init-upgrade-ipam", "docker.io/calico/cni:v3.32.0", "init-install-cni", "docker.io/calico/cni:v3.32.0",
		"calico-node", "docker.io/calico/node:v3.32.0")))
	in.daemonSet(daemonSet("kube-system", "calico-node-windows", podTemplate("calico-node", "node",
		"docker.io/calico/node-windows:v3.32.0", "felix", "docker.io/calico/node-windows:v3.32.0")))
	in.deployment(deployment("kube-system", "calico-typha",
		podTemplate("calico-node", "calico-typha", "docker.io/calico/typha:v3.32.0")))
	in.deployment(deployment("kube-system", "calico-kube-controllers",
		podTemplate("calico-kube-controllers", "calico-kube-controllers", "docker.io/calico/kube-controllers:v3.32.0")))
	in.deployment(deployment("kube-system", "coredns", podTemplate("coredns", "coredns", "coredns:v1.11.0")))
	in.deployment(deployment("calico-apiserver", "calico-apiserver",
		podTemplate("calico-apiserver", "calico-apiserver", "docker.io/calico/apiserver:v3.32.0")))
	in.native("/registry/services/specs/calico-apiserver/calico-api", "v1", "Service",
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "calico-apiserver", Name: "calico-api"}})
	in.native("/registry/configmaps/kube-system/calico-config", "v1", "ConfigMap", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "calico-config"},
		Data:       map[string]string{"calico_backend": "bird", cniConfigKey: config, "veth_mtu": "0"},
	})
	return in
}

var manifestWorkloads = []string{
	"/registry/daemonsets/kube-system/calico-node", "/registry/daemonsets/kube-system/calico-node-windows",
	"/registry/deployments/kube-system/calico-kube-controllers", "/registry/deployments/kube-system/calico-typha",
}

// TestComponentsManifest: every container of a manifest install works on v3 from its first start,
// and the pods roll.
func TestComponentsManifest(t *testing.T) {
	path := manifestInstall(t, cniTemplate).write()
	r := planOn(t, path, settingComponents(true))
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
	require.Len(t, r.changed(), 5)
	for _, key := range manifestWorkloads {
		before, after := workload(t, r.in[key]), workload(t, r.out[key])
		require.Equal(t, before.meta.Generation+1, after.meta.Generation, key)
		require.Len(t, containers(after.pod), len(containers(before.pod)))
		requireGroup(t, after)
	}
	data, err := encoding.Get([]byte(r.out["/registry/configmaps/kube-system/calico-config"]), "data")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"calico_backend": "bird", "veth_mtu": "0",
		cniConfigKey: strings.Replace(cniTemplate, apiVersionV1, apiVersionV3, 1)}, data)
	require.Equal(t, []string{
		"wait until DaemonSet kube-system/calico-node has rolled out with CALICO_API_GROUP=projectcalico.org/v3 " +
			"(kubectl -n kube-system rollout status daemonset/calico-node)",
		"wait until DaemonSet kube-system/calico-node-windows has rolled out with " +
			"CALICO_API_GROUP=projectcalico.org/v3 (kubectl -n kube-system rollout status " +
			"daemonset/calico-node-windows)",
		"wait until Deployment kube-system/calico-kube-controllers has rolled out with " +
			"CALICO_API_GROUP=projectcalico.org/v3 (kubectl -n kube-system rollout status " +
			"deployment/calico-kube-controllers)",
		"wait until Deployment kube-system/calico-typha has rolled out with CALICO_API_GROUP=projectcalico.org/v3 " +
			"(kubectl -n kube-system rollout status deployment/calico-typha)",
		"after the restore, delete Calico's old API server, Deployment calico-apiserver/calico-apiserver",
		"after the restore, delete the old API server's Service calico-apiserver/calico-api",
	}, r.byHand())

	require.Equal(t, r.out, planOn(t, path, settingComponents(true)).out, "the same at each run")
}

// TestComponentsSet: already correct components stay unchanged.
func TestComponentsSet(t *testing.T) {
	template := podTemplate("calico-node", "calico-node", "calico/node:v3.32.0")
	template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: envAPIGroup, Value: apiVersionV3}}
	in := newInput(t)
	in.daemonSet(daemonSet("kube-system", "calico-node", template))
	r := planOn(t, in.write(), settingComponents(true))
	require.NoError(t, r.err)
	require.Empty(t, r.changed())
	require.Empty(t, r.byHand())
}

// TestComponentsByHand: with --set-api-group=false nothing is changed, and every change is a manual
// step.
func TestComponentsByHand(t *testing.T) {
	r := planOn(t, manifestInstall(t, cniTemplate).write(), settingComponents(false))
	require.NoError(t, r.err)
	require.Empty(t, r.changed())
	steps := strings.Join(r.byHand(), "\n")
	for _, want := range []string{
		"set CALICO_API_GROUP=projectcalico.org/v3 on every container and initContainer of DaemonSet " +
			"kube-system/calico-node\n",
		"initContainer of DaemonSet kube-system/calico-node-windows",
		"initContainer of Deployment kube-system/calico-typha",
		"initContainer of Deployment kube-system/calico-kube-controllers",
		`set calico_api_group to projectcalico.org/v3 in cni_network_config of ConfigMap kube-system/calico-config ` +
			`(it says "crd.projectcalico.org/v1")`,
	} {
		require.Contains(t, steps, want)
	}
}

// TestComponentsCanal: Calico beside flannel is a manifest install with other names.
func TestComponentsCanal(t *testing.T) {
	in := newInput(t)
	key := in.daemonSet(daemonSet("kube-system", "canal", podTemplate("canal", "init-install-cni", "calico/cni:v3.32.0",
		"calico-node", "calico/node:v3.32.0", "kube-flannel", "flannel/flannel:v0.24.4")))
	r := planOn(t, in.write(), settingComponents(true))
	require.Equal(t, []string{"~" + key}, r.changed())
}

// TestComponentsOperator: the operator's components stay unchanged, whether an operator owns them,
// runs beside them, or is only declared.
func TestComponentsOperator(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "operator.tigera.io/v1", Kind: "Installation", Name: "default", UID: "1"}
	node := podTemplate("calico-node", "calico-node", "quay.io/calico/node:v3.32.0")
	for name, build := range map[string]func(in *input){
		"owned": func(in *input) { in.daemonSet(daemonSet("elsewhere", "calico-node", node, owner)) },
		"beside": func(in *input) {
			in.daemonSet(daemonSet("calico-system", "calico-node", node))
			in.deployment(deployment("tigera-operator", "tigera-operator",
				podTemplate("tigera-operator", "tigera-operator", "quay.io/tigera/operator:v1.42.0")))
		},
		"declared": func(in *input) {
			in.daemonSet(daemonSet("calico-system", "calico-node", node))
			in.put("/registry/operator.tigera.io/installations/default",
				[]byte(`{"apiVersion":"operator.tigera.io/v1","kind":"Installation","metadata":{"name":"default"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			build(in)
			in.deployment(deployment("calico-system", "calico-apiserver",
				podTemplate("calico-apiserver", "calico-apiserver", "quay.io/calico/apiserver:v3.32.0"), owner))
			r := planOn(t, in.write(), settingComponents(true))
			require.NoError(t, r.err)
			require.Empty(t, r.changed())
			steps := r.byHand()
			require.Len(t, steps, 3)
			require.Contains(t, steps[0], "re-creates the aggregated APIService v3.projectcalico.org")
			require.Contains(t, steps[2], "it removes its API server by itself")
			if name == "beside" {
				require.Contains(t, steps[0], "kubectl -n tigera-operator set env deployment/tigera-operator "+
					"CALICO_API_GROUP=projectcalico.org/v3")
			}
		})
	}
}

// TestComponentsNames: a step quotes a hostile namespace as one shell word.
func TestComponentsNames(t *testing.T) {
	in := newInput(t)
	in.daemonSet(daemonSet("$(touch PWN)", "calico-node",
		podTemplate("calico-node", "calico-node", "docker.io/calico/node:v3.32.0")))
	r := planOn(t, in.write(), settingComponents(true))
	require.NoError(t, r.err)
	require.Contains(t, strings.Join(r.byHand(), "\n"),
		"(kubectl -n '$(touch PWN)' rollout status daemonset/calico-node)")
}

// TestComponentsNone: a snapshot without Calico's workloads leaves the variable to the user.
func TestComponentsNone(t *testing.T) {
	r := planOn(t, recorded(t, "before.db"), settingComponents(true))
	require.NoError(t, r.err)
	require.Empty(t, r.changed())
	require.Equal(t, []string{"no workload of Calico is in the snapshot: set CALICO_API_GROUP=projectcalico.org/v3 " +
		"on the external workload of Calico before it starts"}, r.byHand())
}

// TestComponentsAggregatedService: the service named by the APIService is old, in any namespace.
func TestComponentsAggregatedService(t *testing.T) {
	in := newInput(t)
	in.edit(aggregated, func(obj map[string]any) {
		set(obj, "spec.service", map[string]any{"namespace": "team-a", "name": "my-api", "port": 443})
	})
	in.native("/registry/services/specs/team-a/my-api", "v1", "Service",
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "my-api"}})
	r := planOn(t, in.write(), settingComponents(true))
	require.Contains(t, r.byHand(), "after the restore, delete the old API server's Service team-a/my-api")
}

// TestComponentsUnreadable: an unreadable workload or configuration refuses the run; if allowed, it
// becomes a manual step.
func TestComponentsUnreadable(t *testing.T) {
	in := newInput(t)
	ds, cm := "/registry/daemonsets/kube-system/calico-node", "/registry/configmaps/kube-system/calico-config"
	in.put(ds, []byte("k8s:enc:aescbc:v1:key1:00"))
	in.put(cm, []byte("k8s:enc:aescbc:v1:key1:00"))
	path := in.write()
	r := planOn(t, path, settingComponents(true))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error encrypted " + ds, "error encrypted " + cm}, r.problems())

	r = planOn(t, path, settingComponents(true), finding.Encrypted.Name)
	require.NoError(t, r.err)
	require.Empty(t, r.changed())
	require.Contains(t, r.byHand()[0], "initContainer of DaemonSet kube-system/calico-node")
	require.Contains(t, r.byHand()[1], "check that cni_network_config of ConfigMap kube-system/calico-config pins no "+
		"other calico_api_group")
}

// TestComponentsOperatorConfig: an operator's ConfigMap stays unchanged.
func TestComponentsOperatorConfig(t *testing.T) {
	in := newInput(t)
	in.native("/registry/configmaps/calico-system/calico-config", "v1", "ConfigMap", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "calico-system", Name: "calico-config",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "operator.tigera.io/v1", Kind: "Installation",
				Name: "default", UID: "1"}}},
		Data: map[string]string{cniConfigKey: cniTemplate},
	})
	r := planOn(t, in.write(), settingComponents(true))
	require.NoError(t, r.err)
	require.Empty(t, r.changed())
}
