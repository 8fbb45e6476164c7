package sanitize

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
)

// words of k8s.io/api and its like: constants and names of fields. TestVocabulary writes the file.
//
//go:embed vocabulary.txt
var constants string

// vocabulary lists texts that keep their meaning only as they are.
func vocabulary() []string {
	out := slices.Concat(strings.Fields(constants), strings.Fields(others), strings.Fields(systemNames))
	for _, t := range inspect.Builtins() {
		out = append(out, t.Resource.String(), t.Kind, t.Singular)
	}
	return out
}

// others are words with a meaning to servers and controllers that are no constants of k8s.io/api.
const others = `
	localhost cluster.local linux windows amd64 arm64 http https grpc tcp udp sctp metrics healthz livez readyz true false null none default
	prometheus.io/scrape prometheus.io/path prometheus.io/port prometheus.io/scheme
	app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/version app.kubernetes.io/component app.kubernetes.io/part-of
	app.kubernetes.io/managed-by k8s-app meta.helm.sh/release-name meta.helm.sh/release-namespace helm.sh/chart Helm helm
	node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker kubernetes.io/pvc-protection kubernetes.io/pv-protection
	kubectl.kubernetes.io/last-applied-configuration kubectl.kubernetes.io/default-container kubectl.kubernetes.io/restartedAt
	kubernetes.io/config.mirror kubernetes.io/config.source kubernetes.io/config.hash kubernetes.io/config.seen kubernetes.io/bootstrapping
	rbac-defaults rbac.authorization.kubernetes.io/autoupdate
	control-plane.alpha.kubernetes.io/leader storageclass.kubernetes.io/is-default-class ingressclass.kubernetes.io/is-default-class
	pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller pv.kubernetes.io/provisioned-by volume.kubernetes.io/storage-provisioner
	endpointslice.kubernetes.io/managed-by endpointslice-controller.k8s.io endpointslicemirroring-controller.k8s.io
	cert-manager.io/inject-ca-from deployment.kubernetes.io/revision pod-template-hash controller-revision-hash kube-aggregator.kubernetes.io/automanaged
	onstart requests.cpu requests.memory requests.storage limits.cpu limits.memory ephemeral-storage
	docker.io registry.k8s.io quay.io ghcr.io gcr.io mcr.microsoft.com
	projectcalico.org/metadata projectcalico.org/v3 crd.projectcalico.org/v1`

// systemNames are names of objects that servers and controllers make, and find by them.
const systemNames = `
	default kube-system kube-public kube-node-lease kubernetes kube-dns kube-root-ca.crt cluster-info coredns kube-proxy kubeadm-config kubelet-config
	extension-apiserver-authentication extension-apiserver-authentication-reader kube-apiserver-legacy-service-account-token-tracking
	kube-controller-manager kube-scheduler kube-apiserver cloud-controller-manager cluster-admin admin edit view system-cluster-critical system-node-critical
	exempt catch-all global-default leader-election node-high system workload-high workload-low service-accounts probes endpoint-controller
	kube-system-service-accounts system-leader-election system-node-high system-nodes workload-leader-election
	cluster root openshift openshift-infra openshift-node openshift-config openshift-config-managed`

// isSystem reports whether a server or controller made the object of a name.
func isSystem(name string) bool {
	return strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "kubeadm:") || slices.Contains(strings.Fields(systemNames), name)
}

// stayingWords are words that controllers put into the names that they make.
const stayingWords = " kube node apiserver controller manager scheduler etcd proxy system default token bootstrap sh helm release pvc csi "

func stays(word string) bool { return isNumber(word) || strings.Contains(stayingWords, " "+word+" ") }

func isNumber(word string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return len(word) <= longestNumber
	}
	rest, is := strings.CutPrefix(word, "v")
	return is && isVersion(rest)
}

// longestNumber is that of a time in seconds; a longer one may be that of an account.
const longestNumber = 10

// isVersion reports whether the letters after "v" make a version of an API: "1", "1beta2".
func isVersion(rest string) bool {
	major := strings.TrimLeft(rest, "0123456789")
	minor := strings.TrimPrefix(strings.TrimPrefix(major, "alpha"), "beta")
	return major != rest && len(rest) <= 8 && strings.Trim(minor, "0123456789") == "" && (major == "" || minor != major)
}
