package doctor

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
)

// nodeOf returns a Node with a release of its kubelet.
func nodeOf(kubelet string) record {
	return object("minions/n1", "v1", "Node", `},"status":{"nodeInfo":{"kubeletVersion":"`+kubelet+`"}}`)
}

// scaler returns a HorizontalPodAutoscaler of a Deployment at a version.
func scaler(target string) record {
	return object("horizontalpodautoscalers/team/a", "autoscaling/v2", "HorizontalPodAutoscaler",
		`},"spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"`+target+`","kind":"Deployment","name":"d"}}`)
}

// ruleFor returns rules, each for a group, version and resource.
func ruleFor(names ...string) string {
	var all []string
	for of := range slices.Chunk(names, 3) {
		all = append(all, fmt.Sprintf(`{"operations":["CREATE"],"apiGroups":[%q],"apiVersions":[%q],"resources":[%q]}`,
			of[0], of[1], of[2]))
	}
	return `"rules":[` + strings.Join(all, ",") + `]`
}

func policyFor(names ...string) record {
	return object("validatingadmissionpolicies/p", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
		`},"spec":{"matchConstraints":{`+strings.Replace(ruleFor(names...), `"rules"`, `"resourceRules"`, 1)+`}`)
}

// roleFor returns a ClusterRole with a rule for groups. meta is additional metadata.
func roleFor(meta, groups string) record {
	return object("clusterroles/r", "rbac.authorization.k8s.io/v1", "ClusterRole", meta+
		`},"rules":[{"apiGroups":["`+groups+`"],"resources":["x"],"verbs":["get"]}]`)
}

// applied returns metadata with the annotation of "kubectl apply".
func applied(apiVersion string) string {
	return `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"` + apiVersion +
		`\",\"kind\":\"Ingress\"}\n"}}`
}

// helmRelease returns the Secret of a Helm release with an Ingress.
func helmRelease(status, apiVersion string) record {
	manifest := base64.StdEncoding.EncodeToString([]byte(`{"manifest":"---\n# Source: web\napiVersion: ` + apiVersion +
		`\nkind: Ingress\nmetadata:\n  name: web\n"}`))
	return object("secrets/team/sh.helm.release.v1.web.v3", "v1", "Secret",
		`,"labels":{"name":"web","owner":"helm","status":"`+status+`"}},"data":{"release":"`+
			base64.StdEncoding.EncodeToString([]byte(manifest))+`"}`)
}

// releaseDefects returns objects that some releases of Kubernetes cannot decode.
func releaseDefects() []defect {
	k3sServer := object("minions/n1", "v1", "Node", `,"labels":{"node-role.kubernetes.io/control-plane":"true"}},`+
		`"status":{"nodeInfo":{"kubeletVersion":"v1.33.1+k3s1"}}`)
	return []defect{
		{codeVersionDead, only(object("cronjobs/team/a", "batch/v2alpha1", "CronJob", "")), "cronjobs/team/a",
			"1 object of batch/v2alpha1 CronJob: Kubernetes 1.37 does not decode the version; 1.20 is the last " +
				"that does; migrate storage-versions can rewrite it",
			only(object("cronjobs/team/a", "batch/v1beta1", "CronJob", ""))},
		{codeVersionDead, only(object("resourceclaims/team/a", "resource.k8s.io/v1alpha2", "ResourceClaim", "")),
			"resourceclaims/team/a",
			"1.30 is the last that does; migrate storage-versions cannot rewrite it: delete it", nil},
		{codeVersionDead, only(k3sServer, object("resourceclaims/team/a", "resource.k8s.io/v1", "ResourceClaim", "")),
			"resourceclaims/team/a", "Kubernetes 1.33 of this cluster (Node n1) does not decode the version; 1.34 is " +
				"the first that does", only(nodeOf("v1.33.1"), object("resourceclaims/team/a", "resource.k8s.io/v1",
				"ResourceClaim", ""))},
		{codeVersionOld, only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1alpha1",
			"IPAddress", "")), "ipaddresses/10.0.0.9",
			"Kubernetes 1.33 or newer of this cluster (Node n1) decodes the version, 1.37 does not; 1.33 is the last",
			only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1beta1", "IPAddress", ""))},
		{codeUnservedAPI, only(scaler("extensions/v1beta1")), "horizontalpodautoscalers/team/a",
			"1 object of horizontalpodautoscalers.autoscaling: spec.scaleTargetRef names extensions/v1beta1 " +
				"Deployment, which no release since Kubernetes 1.29 serves; apps/v1 replaces it",
			only(scaler("apps/v1beta1"))},
		{codeUnservedAPI, only(policyFor("extensions", "v1beta1", "ingresses")), "validatingadmissionpolicies/p",
			"a rule of spec.matchConstraints names only extensions/v1beta1 ingresses, which no release",
			only(policyFor("networking.k8s.io", "v1", "ingresses"))},
		{codeUnservedAPI, only(webhooks("Mutating", "hook", ruleFor("batch", "v1beta1", "cronjobs"))),
			"mutatingwebhookconfigurations/guard",
			"a rule of webhook guard.example.com names only batch/v1beta1 cronjobs",
			only(webhooks("Mutating", "hook", ruleFor("batch", "v1beta1", "cronjobs", "batch", "v1", "*")))},
		{codeUnservedName, only(roleFor("", "extensions")), "clusterroles/r",
			"1 object of clusterroles.rbac.authorization.k8s.io: a rule names only the group extensions, which no ",
			only(roleFor("", `apps","extensions`), roleFor(`,"labels":{"kubernetes.io/bootstrapping":"rbac-defaults"}`,
				"extensions"))},
		{codeUnservedName, only(object("cronjobs/team/c", "batch/v1", "CronJob", `,"managedFields":[{"manager":"m",`+
			`"apiVersion":"batch/v1beta1"}]}`)), "cronjobs/team/c",
			"1 object of cronjobs.batch: metadata.managedFields names batch/v1beta1, which no release since " +
				"Kubernetes 1.29 serves; batch/v1 replaces it", only(object("cronjobs/team/c", "batch/v1", "CronJob",
				`,"managedFields":[{"manager":"m","apiVersion":"batch/v1"}]}`))},
		{codeUnservedName, only(object("ingress/team/i", "networking.k8s.io/v1", "Ingress",
			applied("extensions/v1beta1"))), "ingress/team/i",
			"the annotation kubectl.kubernetes.io/last-applied-configuration names extensions/v1beta1, which " +
				"no release since Kubernetes 1.29 serves; networking.k8s.io/v1 replaces it",
			only(object("ingress/team/i", "networking.k8s.io/v1", "Ingress", applied("networking.k8s.io/v1")))},
		{codeHelmRelease, only(helmRelease("deployed", "extensions/v1beta1")), "secrets/team/sh.helm.release.v1.web.v3",
			"Helm release web names versions that are not served: extensions/v1beta1 Ingress",
			only(helmRelease("superseded", "extensions/v1beta1"))},
		{codeHelmRelease, only(object("configmaps/team/sh.helm.release.v1.web.v3", "v1", "ConfigMap",
			`},"data":{"release":"?"}`)), "configmaps/team/sh.helm.release.v1.web.v3", "cannot be read: not base64",
			only(helmRelease("deployed", "networking.k8s.io/v1"))},
		{codeUnknownKind, only(object("clustercidrs/a", "networking.k8s.io/v1alpha1", "ClusterCIDR", "")),
			"clustercidrs/a", "1 object of networking.k8s.io/v1alpha1 ClusterCIDR: Kubernetes 1.37 does not have the " +
				"kind; 1.28 is the last that decodes this version", nil},
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
		return object("pods/kube-system/"+name, "v1", "Pod",
			`,"annotations":{`+mirror+`}},"spec":{"containers":[{"name":"`+
				container+`","image":"`+image+`"}]}`)
	}
	const mirror = `"kubernetes.io/config.mirror":"x"`
	kubeadm := func(version string) record {
		return object("configmaps/kube-system/kubeadm-config", "v1", "ConfigMap", `},"data":{"ClusterConfiguration":`+
			`"kind: ClusterConfiguration\nkubernetesVersion: `+version+`\n"}`)
	}
	candidate := object("leasecandidates/kube-system/kcm", "coordination.k8s.io/v1beta1", "LeaseCandidate",
		`},"spec":{"leaseName":"kcm","binaryVersion":"1.34.2"}`)
	leader := release{34, true, "LeaseCandidate kcm"}
	onNode := release{33, true, "Node n1"}
	inConfig := release{minor: 35, evidence: "ConfigMap kubeadm-config"}
	for name, tc := range map[string]struct {
		records []record
		want    release
	}{
		"nothing":         {nil, release{}},
		"common versions": {served("v1.", "v1.apps", "v1.example.com"), release{}},
		"a new version":   {served("v1.", "v1.resource.k8s.io"), release{34, true, "its APIServices"}},
		"old versions": {served("v1beta3.flowcontrol.apiserver.k8s.io", "v1beta1.networking.k8s.io"),
			release{31, true, "its APIServices"}},
		"versions of no release":          {served("v1.resource.k8s.io", "v1beta1.batch"), release{}},
		"kubelets":                        {append(served("v1.resource.k8s.io"), nodeOf("v1.33.1")), onNode},
		"a newer kubelet than this build": {only(nodeOf("v1.99.0")), release{}},
		"a leader":                        {only(candidate, nodeOf("v1.33.1")), leader},
		"kubeadm":                         {only(candidate, kubeadm("v1.35.0")), inConfig},
		"static Pods": {only(kubeadm("v1.35.0"), pod("a", mirror, "kube-apiserver", "r.io:5000/kube-apiserver:v1.36.3"),
			pod("b", mirror, "kube-apiserver", "kube-apiserver:v1.35.9@sha256:0"),
			pod("c", mirror, "kube-scheduler", "kube-scheduler:v1.37.0"),
			pod("d", "", "kube-apiserver", "kube-apiserver:v1.37.0")), release{36, false, "static Pod a"}},
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

// TestReleaseOfRestore: --kubernetes decides which stored versions and which names are findings.
func TestReleaseOfRestore(t *testing.T) {
	on := base(t)
	for name, tc := range map[string]struct {
		record
		code        *finding.Code
		with, first int // the release with the finding, and the first one without
	}{
		"an admission policy": {object("mutatingadmissionpolicies/p", "admissionregistration.k8s.io/v1",
			"MutatingAdmissionPolicy", ""), codeVersionDead, 35, 36},
		"a kind of a later release": {object("podgroups/team/p", "scheduling.k8s.io/v1beta1", "PodGroup", ""),
			codeUnknownKind, 35, 37},
		"a field": {object("pods/team/p", "v1", "Pod", `},"spec":{"schedulingGroup":{"podGroupName":"g"}}`),
			codePrunedField, 35, 36},
		"an owner": {owned1("configmaps/team/a", "ConfigMap", "resource.k8s.io/v1", "ResourceClaim", uidOf(9)),
			codeOwnerUnresolvable, 33, 34},
		"rules": {webhooks("Validating", "hook", ruleFor("resource.k8s.io", "v1", "resourceclaims")),
			codeUnservedAPI, 33, 34},
		"a group": {roleFor("", "lifecycle.k8s.io"), codeUnservedName, 36, 37},
		"a manager": {object("resourceclaims/team/c", "resource.k8s.io/v1beta1", "ResourceClaim",
			`,"managedFields":[{"manager":"m","apiVersion":"resource.k8s.io/v1"}]}`), codeUnservedName, 33, 34},
	} {
		t.Run(name, func(t *testing.T) {
			service := apiServiceObject("v1.resource.k8s.io", `{"group":"resource.k8s.io","version":"v1"}`, `{}`)
			s := written(t, on, append(healthy(), service, tc.record)...)
			require.Len(t, examined(t, s, Options{Kubernetes: tc.with}).Of(tc.code), 1)
			for _, other := range []int{tc.first, 37, 0} {
				require.Empty(t, examined(t, s, Options{Kubernetes: other}).Of(tc.code), other)
			}
		})
	}
}
