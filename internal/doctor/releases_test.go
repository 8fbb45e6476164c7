package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
)

// nodeOf returns a Node with a release of its kubelet.
func nodeOf(kubelet string) record {
	return object("minions/n1", "v1", "Node", `},"status":{"nodeInfo":{"kubeletVersion":"`+kubelet+`"}}`)
}

// releaseDefects returns objects that some releases of Kubernetes cannot decode.
func releaseDefects() []defect {
	return []defect{
		{codeVersionDead, only(object("cronjobs/team/a", "batch/v2alpha1", "CronJob", "")), "cronjobs/team/a",
			"1 object of batch/v2alpha1 CronJob: Kubernetes 1.37 does not decode the version; 1.20 is the last",
			only(object("cronjobs/team/a", "batch/v1beta1", "CronJob", ""))},
		{codeVersionDead, only(nodeOf("v1.33.1"), object("resourceclaims/team/a", "resource.k8s.io/v1",
			"ResourceClaim", "")), "resourceclaims/team/a",
			"Kubernetes 1.33 of this cluster (Node n1) does not decode the version; 1.34 is the first that does",
			only(nodeOf("v1.34.0-rc.1+k3s1"), object("resourceclaims/team/a", "resource.k8s.io/v1", "ResourceClaim",
				""))},
		{codeVersionOld, only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1alpha1",
			"IPAddress", "")), "ipaddresses/10.0.0.9",
			"Kubernetes 1.33 of this cluster (Node n1) decodes the version, 1.37 does not; 1.33 is the last",
			only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1beta1", "IPAddress", ""))},
		{codeUnknownKind, only(object("clustercidrs/a", "networking.k8s.io/v1alpha1", "ClusterCIDR", "")),
			"clustercidrs/a", "", nil},
	}
}

// TestClusterRelease: the best evidence of the release of a cluster counts.
func TestClusterRelease(t *testing.T) {
	on := base(t)
	served := func(versions ...string) (all []record) {
		for _, text := range versions {
			version, group, _ := strings.Cut(text, ".")
			all = append(all, apiServiceObject(text, `{"group":"`+group+`","version":"`+version+`"}`, `{}`))
		}
		return all
	}
	pod := func(name, mirror, container, image string) record {
		return object("pods/kube-system/"+name, "v1", "Pod", `,"annotations":{`+mirror+`}},"spec":{"containers":[{"name":"`+
			container+`","image":"`+image+`"}]}`)
	}
	const mirror = `"kubernetes.io/config.mirror":"x"`
	kubeadm := func(version string) record {
		return object("configmaps/kube-system/kubeadm-config", "v1", "ConfigMap", `},"data":{"ClusterConfiguration":`+
			`"kind: ClusterConfiguration\nkubernetesVersion: `+version+`\n"}`)
	}
	candidate := object("leasecandidates/kube-system/kcm", "coordination.k8s.io/v1beta1", "LeaseCandidate",
		`},"spec":{"leaseName":"kcm","binaryVersion":"1.34.2"}`)
	for name, tc := range map[string]struct {
		records []record
		want    release
	}{
		"nothing":         {nil, release{}},
		"common versions": {served("v1.", "v1.apps", "v1.example.com"), release{}},
		"a new version":   {served("v1.", "v1.resource.k8s.io"), release{34, "or newer, by its APIServices"}},
		"old versions": {served("v1beta3.flowcontrol.apiserver.k8s.io", "v1beta1.networking.k8s.io"),
			release{31, "or newer, by its APIServices"}},
		"versions of no release":          {served("v1.resource.k8s.io", "v1beta1.batch"), release{}},
		"kubelets":                        {append(served("v1.resource.k8s.io"), nodeOf("v1.33.1+k3s1")), release{33, "Node n1"}},
		"a newer kubelet than this build": {only(nodeOf("v1.99.0")), release{}},
		"a leader":                        {only(candidate, nodeOf("v1.33.1")), release{34, "LeaseCandidate kcm"}},
		"kubeadm":                         {only(candidate, kubeadm("v1.35.0")), release{35, "ConfigMap kubeadm-config"}},
		"static Pods": {only(kubeadm("v1.35.0"), pod("a", mirror, "kube-apiserver", "r.io:5000/kube-apiserver:v1.36.3"),
			pod("b", mirror, "kube-apiserver", "kube-apiserver:v1.35.9@sha256:0"),
			pod("c", mirror, "kube-scheduler", "kube-scheduler:v1.37.0"),
			pod("d", "", "kube-apiserver", "kube-apiserver:v1.37.0")), release{36, "static Pod a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := written(t, on, append(only(object("namespaces/default", "v1", "Namespace", "")), tc.records...)...)
			d := newDoctor(t.Context(), inspect.NewReader(s, nil), Options{}, newReport(Options{}))
			for _, step := range []func(*doctor) error{prepare, define, readRecords} {
				require.NoError(t, step(d))
			}
			is, err := clusterRelease(d)
			require.NoError(t, err)
			require.Equal(t, tc.want, is)
		})
	}
}
