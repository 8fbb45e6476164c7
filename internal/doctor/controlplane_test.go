package doctor

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// machineDefects are the defects of a restore on other machines.
func machineDefects() []defect { return slices.Concat(nodeDefects(), pinDefects(), addressDefects()) }

// nodeDefects are records of the old nodes.
func nodeDefects() []defect {
	pod := func(rest string) record { return object("pods/team/p", "v1", "Pod", rest) }
	devices := func(field string) string {
		return `{"nodeSelectorTerms":[{"matchFields":[{"key":"` + field + `","operator":"In","values":["n1"]}]}]}`
	}
	return []defect{
		{machines.CodeOldNodes, only(object("minions/n1", "v1", "Node", ""), object("minions/n2", "v1", "Node", "")),
			"minions/n1", "2 Nodes of the old machines: n1, n2", nil},
		{machines.CodeNodeRecords, only(heartbeat("n1", "2026-01-01T00:00:00")), "leases/kube-node-lease/n1",
			"1 object of leases.coordination.k8s.io",
			only(object("leases/team/leader", "coordination.k8s.io/v1", "Lease", ""))},
		{machines.CodeNodeRecords, only(object("csinodes/n1", "storage.k8s.io/v1", "CSINode", "")), "csinodes/n1",
			"csinodes.storage.k8s.io", nil},
		{machines.CodeNodePods, only(pod(`},"spec":{"nodeName":"n1"}`)), "pods/team/p",
			"1 Pod bound to a node: Pods without a controller",
			only(pod(`},"spec":{"nodeName":"n1"},"status":{"phase":"Succeeded"}`),
				object("pods/team/q", "v1", "Pod", ""))},
		{machines.CodeNodePods,
			only(
				pod(
					`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"x",` +
						`"controller":true}]},"spec":{"nodeName":"n1"}`)), "pods/team/p", "Pods of kind DaemonSet",
			nil},
		{machines.CodeNodePods,
			only(pod(`,"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1"}`)), "pods/team/p",
			"static Pods", nil},
		{machines.CodeNodeRecords, only(object("csistoragecapacities/team/c", "storage.k8s.io/v1", "CSIStorageCapacity",
			`},"storageClassName":"s","nodeTopology":{"matchLabels":{"topology.topolvm.io/node":"n1"}}`)),
			"csistoragecapacities/team/c", "csistoragecapacities.storage.k8s.io",
			only(object("csistoragecapacities/team/c", "storage.k8s.io/v1", "CSIStorageCapacity",
				`},"storageClassName":"s","nodeTopology":{"matchLabels":{"topology.kubernetes.io/zone":"z"}}`))},
		{machines.CodeNodeRecords, only(object("resourceslices/s", "resource.k8s.io/v1", "ResourceSlice",
			`},"spec":{"driver":"d","nodeName":"n1"}`)), "resourceslices/s",
			"1 object of resourceslices.resource.k8s.io", only(object("resourceslices/s", "resource.k8s.io/v1",
				"ResourceSlice", `},"spec":{"driver":"d","allNodes":true,"devices":[{"name":"a"}]}`))},
		{machines.CodeNodeRecords, only(object("resourceslices/s", "resource.k8s.io/v1beta1", "ResourceSlice",
			`},"spec":{"driver":"d","perDeviceNodeSelection":true,"devices":[{"name":"a","basic":{"nodeName":"n1",`+
				`"capacity":{"m":{"value":"1"}}}},{"name":"b"}]}`)), "resourceslices/s", "resourceslices", nil},
		{machines.CodeNodeRecords, only(object("resourceclaims/team/c", "resource.k8s.io/v1", "ResourceClaim",
			`},"status":{"allocation":{"nodeSelector":`+devices("metadata.name")+`}`)), "resourceclaims/team/c",
			"1 object of resourceclaims.resource.k8s.io",
			only(object("resourceclaims/team/c", "resource.k8s.io/v1", "ResourceClaim",
				`},"status":{"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a",`+
					`"operator":"Exists"}]}]}}`))},
		{machines.CodeNodeRecords, only(object("podcertificaterequests/team/c", "certificates.k8s.io/v1beta1",
			"PodCertificateRequest", `},"spec":{"nodeName":"n1"}`)), "podcertificaterequests/team/c",
			"podcertificaterequests", nil},
		{machines.CodeNodeUser, only(object("clusterrolebindings/b", "rbac.authorization.k8s.io/v1",
			"ClusterRoleBinding",
			`},"subjects":[{"kind":"User","name":"system:node:n1"}],"roleRef":{"kind":"ClusterRole","name":"r"}`)),
			"clusterrolebindings/b", "clusterrolebindings",
			only(object("clusterrolebindings/b", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding",
				`},"subjects":[{"kind":"Group","name":"system:nodes"}],"roleRef":{"kind":"ClusterRole","name":"r"}`))},
		{machines.CodeNodeUser, only(object("rolebindings/team/b", "rbac.authorization.k8s.io/v1", "RoleBinding",
			`},"subjects":[{"kind":"User","name":"system:node:n1"}],"roleRef":{"kind":"Role","name":"r"}`)),
			"rolebindings/team/b", "rolebindings", nil},
	}
}

// pinDefects keep a workload or a volume on an old node.
func pinDefects() []defect {
	const hostname = `"nodeSelector":{"kubernetes.io/hostname":"n1"}`
	pod := func(rest string) record { return object("pods/team/p", "v1", "Pod", rest) }
	volume := func(spec string) record {
		return object("persistentvolumes/v", "v1", "PersistentVolume", `},"spec":`+spec)
	}
	affinity := func(key string) string {
		return `{"csi":{"driver":"d"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` +
			key + `","operator":"In","values":["n1"]}]}]}}}`
	}
	claim := func(spec string) record {
		return object("persistentvolumeclaims/team/c", "v1", "PersistentVolumeClaim",
			`,"annotations":{"volume.kubernetes.io/selected-node":"n1"}},"spec":{`+spec)
	}
	return []defect{
		{machines.CodeNodePinned, only(object("deployments/team/d", "apps/v1", "Deployment",
			`},"spec":{"template":{"spec":{`+hostname+`}}}`)), "deployments/team/d", "1 object of deployments.apps",
			only(object("deployments/team/d", "apps/v1", "Deployment",
				`},"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}`))},
		{machines.CodeNodePinned, only(object("cronjobs/team/c", "batch/v1", "CronJob",
			`},"spec":{"jobTemplate":{"spec":{"template":{"spec":{`+hostname+`}}}}}`)), "cronjobs/team/c",
			"cronjobs.batch", nil},
		{machines.CodeNodePinned, only(object("controllers/team/c", "v1", "ReplicationController",
			`},"spec":{"template":{"spec":{`+hostname+`}}}`)), "controllers/team/c", "replicationcontrollers", nil},
		{machines.CodeNodePinned, only(object("podtemplates/team/c", "v1", "PodTemplate",
			`},"template":{"spec":{`+hostname+`}}`)), "podtemplates/team/c", "podtemplates", nil},
		{machines.CodeNodePinned, only(object("replicasets/team/c", "apps/v1", "ReplicaSet",
			`},"spec":{"template":{"spec":{`+hostname+`}}}`)), "replicasets/team/c", "replicasets.apps",
			only(object("replicasets/team/c", "apps/v1", "ReplicaSet",
				`,"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"x",`+
					`"controller":true}]},"spec":{"template":{"spec":{`+hostname+`}}}`))},
		{machines.CodeNodePinned, only(object("storageclasses/c", "storage.k8s.io/v1", "StorageClass",
			`},"provisioner":"p","allowedTopologies":[{"matchLabelExpressions":[{"key":"topology.topolvm.io/node",`+
				`"values":["n1"]}]}]`)), "storageclasses/c", "storageclasses.storage.k8s.io",
			only(object("storageclasses/c", "storage.k8s.io/v1", "StorageClass",
				`},"provisioner":"p",`+
					`"allowedTopologies":[{"matchLabelExpressions":[{"key":"topology.kubernetes.io/zone",`+
					`"values":["n1"]}]}]`))},
		{machines.CodeNodePinned, only(object("runtimeclasses/c", "node.k8s.io/v1", "RuntimeClass",
			`},"handler":"h","scheduling":{`+hostname+`}`)), "runtimeclasses/c", "runtimeclasses.node.k8s.io",
			only(object("runtimeclasses/c", "node.k8s.io/v1", "RuntimeClass",
				`},"handler":"h","scheduling":{"nodeSelector":{"a":"b"}}`))},
		{machines.CodeNodePinned, only(claim(`"storageClassName":"s"`)), "persistentvolumeclaims/team/c",
			"1 object of persistentvolumeclaims", only(claim(`"volumeName":"v"`))},
		{machines.CodeNodePinned, only(pod(`},"spec":{` + hostname + `}`)), "pods/team/p", "1 object of pods",
			only(pod(`},"spec":{"nodeName":"n1"}`))},
		{machines.CodeNodeVolume, only(volume(`{"local":{"path":"/mnt"}}`)), "persistentvolumes/v",
			"1 PersistentVolume of type local", only(volume(`{"nfs":{"server":"s","path":"/"}}`))},
		{machines.CodeNodeVolume, only(volume(`{"hostPath":{"path":"/mnt"}}`)), "persistentvolumes/v", "hostPath", nil},
		{machines.CodeNodeVolume, only(volume(affinity("topology.topolvm.io/node"))), "persistentvolumes/v",
			"affinity to nodes by name", only(volume(affinity("topology.kubernetes.io/zone")))},
		{machines.CodeVolumeAttached, only(object("volumeattachments/a", "storage.k8s.io/v1", "VolumeAttachment", "")),
			"volumeattachments/a", "1 VolumeAttachment", nil},
	}
}

// addressDefects are addresses and credentials of the old machines.
func addressDefects() []defect {
	config := func(name, data string) record { return object("configmaps/"+name, "v1", "ConfigMap", `},"data":`+data) }
	service := func(spec string) record { return object("services/specs/team/s", "v1", "Service", `},"spec":`+spec) }
	ca := config("kube-system/kube-root-ca.crt", `{"ca.crt":"THE CA\n"}`)
	bundle := func(ca string) record {
		return webhooks("Validating", "hook", `"clientConfig":{"caBundle":"`+
			base64.StdEncoding.EncodeToString([]byte(ca))+`","service":{"namespace":"team","name":"hook"}}`)
	}
	return []defect{
		{machines.CodeTokenKey, only(token("sa", uidOf(2))), "secrets/team/token", "1 Secret with a token",
			only(object("secrets/team/s", "v1", "Secret", ""))},
		{machines.CodeNodePassword, only(object("secrets/kube-system/n1.node-password.k3s", "v1", "Secret", "")),
			"secrets/kube-system/n1.node-password.k3s", "1 Secret",
			only(object("secrets/team/n1.node-password.k3s", "v1", "Secret", ""))},
		{machines.CodeAPIAddress, only(config("kube-public/cluster-info",
			`{"kubeconfig":"clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n"}`)),
			"configmaps/kube-public/cluster-info", "https://10.0.0.1:6443",
			only(config("team/cluster-info", `{"kubeconfig":"server: https://10.0.0.1:6443"}`))},
		{machines.CodeAPIAddress, only(config("kube-system/kubeadm-config",
			`{"ClusterConfiguration":"apiServer: {}\ncontrolPlaneEndpoint: \"api.example.com:6443\"\n"}`)),
			"configmaps/kube-system/kubeadm-config", "api.example.com:6443",
			only(config("kube-system/kubeadm-config",
				`{"ClusterConfiguration":"controlPlaneEndpoint: user:pass@word x"}`))},
		{machines.CodeServiceAddress, only(service(`{"type":"LoadBalancer"}`)), "services/specs/team/s",
			"1 Service with a load balancer", only(service(`{"ports":[{"port":80}]}`))},
		{machines.CodeServiceAddress, only(service(`{"externalIPs":["192.0.2.1"]}`)), "services/specs/team/s",
			"external IPs", nil},
		{machines.CodeServiceAddress, only(service(`{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}`)),
			"services/specs/team/s", "node ports", nil},
		{machines.CodeServiceRange, only(record{"ranges/serviceips",
			`{"apiVersion":"v1","kind":"RangeAllocation","metadata":{},"range":"10.96.0.0/12","data":""}`}),
			"ranges/serviceips", "serviceips: 10.96.0.0/12", nil},
		{machines.CodeServiceRange, only(object("servicecidrs/kubernetes", "networking.k8s.io/v1", "ServiceCIDR",
			`},"spec":{"cidrs":["10.96.0.0/12"]}`)), "servicecidrs/kubernetes", "kubernetes: 10.96.0.0/12", nil},
		{machines.CodeWebhookURL, only(webhooks("Mutating", "hook", `"clientConfig":{"url":"https://192.0.2.1/"}`)),
			"mutatingwebhookconfigurations/guard",
			"1 object of mutatingwebhookconfigurations.admissionregistration.k8s.io",
			only(webhooks("Mutating", "hook", allPods))},
		{machines.CodeWebhookURL,
			only(crd("",
				`{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://192.0.2.1/"},`+
					`"conversionReviewVersions":["v1"]}}`, `["v1"]`)), crds,
			"customresourcedefinitions.apiextensions.k8s.io", nil},
		{machines.CodeWebhookURL, only(webhooks("Mutating", "alias", allPods), alias("hooks.example.com")),
			"mutatingwebhookconfigurations/guard", "1 object of mutating",
			only(webhooks("Mutating", "alias", allPods), alias("hook.team.svc"))},
		{machines.CodeWebhookURL, only(crd("", fmt.Sprintf(ofTeam, "alias"), `["v1"]`), alias("hooks.example.com")),
			crds, "customresourcedefinitions", nil},
		{machines.CodeWebhookURL, only(apiServiceObject("v1.metrics.example.org",
			`{"group":"metrics.example.org","version":"v1","service":{"namespace":"team","name":"alias"}}`, `{}`),
			alias("hooks.example.com")), "apiregistration.k8s.io/apiservices/v1.metrics.example.org",
			"apiservices", nil},
		{machines.CodeClusterCA, only(ca, bundle("THE CA")), "validatingwebhookconfigurations/guard",
			"1 object of validating", only(ca, bundle("ANOTHER"))},
		{machines.CodeClusterCA, only(ca, apiServiceObject("v1.metrics.example.org",
			`{"group":"metrics.example.org","version":"v1","caBundle":"`+
				base64.StdEncoding.EncodeToString([]byte("THE CA"))+`","service":{"namespace":"team","name":"hook"}}`,
			`{}`)), "apiregistration.k8s.io/apiservices/v1.metrics.example.org", "apiservices", nil},
	}
}

// TestNodeFields: each kind of k8s.io/api with a field for the name of a node is known.
func TestNodeFields(t *testing.T) {
	var names func(at reflect.Type, seen map[reflect.Type]bool) bool
	names = func(at reflect.Type, seen map[reflect.Type]bool) bool {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice || at.Kind() == reflect.Map {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || seen[at] {
			return false
		}
		seen[at] = true
		for i := range at.NumField() {
			field, _, _ := strings.Cut(at.Field(i).Tag.Get("json"), ",")
			if slices.Contains([]string{"nodeName", "nodeSelector", "nodeSelectorTerms", "nodeID", "forNodes"},
				field) || names(at.Field(i).Type, seen) {
				return true
			}
		}
		return false
	}
	found := map[string]bool{}
	for kind, is := range scheme.Scheme.AllKnownTypes() {
		if _, object := is.FieldByName("ObjectMeta"); object && names(is, map[reflect.Type]bool{}) {
			found[kind.Kind] = true
		}
	}
	require.ElementsMatch(t, []string{
		"CSINode", "PersistentVolume", "Pod", "PodCertificateRequest", "ResourceClaim", "ResourceSlice", "RuntimeClass",
		"VolumeAttachment",
		"CronJob", "DaemonSet", "Deployment", "Job", "PodTemplate", "ReplicaSet",
		"ReplicationController", "StatefulSet",
		"EndpointSlice", "Endpoints", // recreated by controllers and changed by prepare-restore
		"ResourcePoolStatusRequest", // an answer to a person
	}, slices.Collect(maps.Keys(found)))
}

// TestNewMachines: machine dependencies are reported only with Options.NewMachines.
func TestNewMachines(t *testing.T) {
	on := base(t)
	for _, tc := range machineDefects() {
		t.Run(tc.code.Name, func(t *testing.T) {
			s := written(t, on, append(healthy(), tc.with...)...)
			found := examined(t, s, Options{NewMachines: true}).Of(tc.code)
			require.Len(t, found, 1)
			require.Equal(t, "/registry/"+tc.key, found[0].Key)
			require.Contains(t, found[0].Reason, tc.says)
			require.Empty(t, examined(t, s, Options{}).Of(tc.code))
			encoded := asProtobuf(t, append(healthy(), tc.with...), false)
			require.Equal(t, found, examined(t, written(t, on, encoded...), Options{NewMachines: true}).Of(tc.code),
				"in protobuf")
			require.Empty(t, examined(t, written(t, on, append(healthy(), tc.without...)...),
				Options{NewMachines: true}).Of(tc.code))
		})
	}
	t.Run("healthy", func(t *testing.T) {
		var codes []*finding.Code
		for _, f := range examined(t, written(t, on, healthy()...), Options{NewMachines: true}).Findings {
			codes = append(codes, f.Code)
		}
		require.Equal(t, []*finding.Code{codeBumpRevision, codeEtcdVersion, machines.CodeNotInFile},
			slices.Compact(codes))
	})
}
