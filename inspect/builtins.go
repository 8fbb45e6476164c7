package inspect

import (
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinTypes lists what kube-apiserver serves and stores, from 1.16 to 1.37, one resource a line: group (- for the core's),
// plural, kind, scope (C or N), short names (- for none), categories. As "kubectl api-resources -o wide" of servers of these
// releases prints them. The order is the one in which kubectl prefers groups.
const builtinTypes = `
- configmaps ConfigMap N cm
- endpoints Endpoints N ep
- events Event N ev
- limitranges LimitRange N limits
- namespaces Namespace C ns
- nodes Node C no
- persistentvolumeclaims PersistentVolumeClaim N pvc
- persistentvolumes PersistentVolume C pv
- pods Pod N po all
- podtemplates PodTemplate N -
- replicationcontrollers ReplicationController N rc all
- resourcequotas ResourceQuota N quota
- secrets Secret N -
- serviceaccounts ServiceAccount N sa
- services Service N svc all
apiregistration.k8s.io apiservices APIService C - api-extensions
apps controllerrevisions ControllerRevision N -
apps daemonsets DaemonSet N ds all
apps deployments Deployment N deploy all
apps replicasets ReplicaSet N rs all
apps statefulsets StatefulSet N sts all
autoscaling horizontalpodautoscalers HorizontalPodAutoscaler N hpa all
batch cronjobs CronJob N cj all
batch jobs Job N - all
certificates.k8s.io certificatesigningrequests CertificateSigningRequest C csr
certificates.k8s.io clustertrustbundles ClusterTrustBundle C -
certificates.k8s.io podcertificaterequests PodCertificateRequest N -
networking.k8s.io ingressclasses IngressClass C -
networking.k8s.io ingresses Ingress N ing
networking.k8s.io ipaddresses IPAddress C ip
networking.k8s.io networkpolicies NetworkPolicy N netpol
networking.k8s.io servicecidrs ServiceCIDR C -
policy poddisruptionbudgets PodDisruptionBudget N pdb
policy podsecuritypolicies PodSecurityPolicy C psp
rbac.authorization.k8s.io clusterrolebindings ClusterRoleBinding C -
rbac.authorization.k8s.io clusterroles ClusterRole C -
rbac.authorization.k8s.io rolebindings RoleBinding N -
rbac.authorization.k8s.io roles Role N -
storage.k8s.io csidrivers CSIDriver C -
storage.k8s.io csinodes CSINode C -
storage.k8s.io csistoragecapacities CSIStorageCapacity N -
storage.k8s.io storageclasses StorageClass C sc
storage.k8s.io volumeattachments VolumeAttachment C -
storage.k8s.io volumeattributesclasses VolumeAttributesClass C vac
admissionregistration.k8s.io mutatingadmissionpolicies MutatingAdmissionPolicy C - api-extensions
admissionregistration.k8s.io mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding C - api-extensions
admissionregistration.k8s.io mutatingwebhookconfigurations MutatingWebhookConfiguration C - api-extensions
admissionregistration.k8s.io validatingadmissionpolicies ValidatingAdmissionPolicy C - api-extensions
admissionregistration.k8s.io validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C - api-extensions
admissionregistration.k8s.io validatingwebhookconfigurations ValidatingWebhookConfiguration C - api-extensions
apiextensions.k8s.io customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions
scheduling.k8s.io priorityclasses PriorityClass C pc
coordination.k8s.io leasecandidates LeaseCandidate N -
coordination.k8s.io leases Lease N -
node.k8s.io runtimeclasses RuntimeClass C -
discovery.k8s.io endpointslices EndpointSlice N -
flowcontrol.apiserver.k8s.io flowschemas FlowSchema C -
flowcontrol.apiserver.k8s.io prioritylevelconfigurations PriorityLevelConfiguration C -
internal.apiserver.k8s.io storageversions StorageVersion C -
resource.k8s.io deviceclasses DeviceClass C -
resource.k8s.io devicetaintrules DeviceTaintRule C -
resource.k8s.io resourceclaims ResourceClaim N -
resource.k8s.io resourceclaimtemplates ResourceClaimTemplate N -
resource.k8s.io resourceslices ResourceSlice C -
scheduling.k8s.io workloads Workload N -
storagemigration.k8s.io storageversionmigrations StorageVersionMigration C -
`

// otherGroups are groups that serve, or served, a built-in from the place of another.
func otherGroups() map[gvr.GroupResource]gvr.GroupResource {
	return map[gvr.GroupResource]gvr.GroupResource{
		{Group: "events.k8s.io", Resource: "events"}:           {Resource: "events"},
		{Group: "extensions", Resource: "ingresses"}:           {Group: "networking.k8s.io", Resource: "ingresses"},
		{Group: "extensions", Resource: "deployments"}:         {Group: "apps", Resource: "deployments"},
		{Group: "extensions", Resource: "daemonsets"}:          {Group: "apps", Resource: "daemonsets"},
		{Group: "extensions", Resource: "replicasets"}:         {Group: "apps", Resource: "replicasets"},
		{Group: "extensions", Resource: "networkpolicies"}:     {Group: "networking.k8s.io", Resource: "networkpolicies"},
		{Group: "extensions", Resource: "podsecuritypolicies"}: {Group: "policy", Resource: "podsecuritypolicies"},
	}
}

// Builtins lists the types that kube-apiserver has of itself, whether a snapshot has objects of them or not.
func Builtins() (types []*Type) {
	list := func(words string) []string {
		if words == "-" {
			return nil
		}
		return strings.Split(words, ",")
	}
	for line := range strings.Lines(strings.TrimSpace(builtinTypes)) {
		f := append(strings.Fields(line), "-")
		types = append(types, &Type{
			Resource: gvr.GroupResource{Group: strings.Trim(f[0], "-"), Resource: f[1]}, Kind: f[2], Singular: strings.ToLower(f[2]),
			Namespaced: f[3] == "N", ShortNames: list(f[4]), Categories: slices.Clone(list(f[5])), Builtin: true,
		})
	}
	return types
}
