package sanitize

import (
	"bytes"
	"context"
	_ "embed"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// learn builds a dictionary of the names in a snapshot, from its keys and from objects that define
// words.
func learn(ctx context.Context, v *transform.View, key []byte) (*dictionary, error) {
	d := newDictionary(key)
	for e, err := range v.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		d.take(string(e.Key))
		parsed, err := e.ParseKey()
		if err != nil || keys.IsRecord(parsed.Resource) {
			continue
		}
		d.vocabulary(parsed.Resource.String())
		d.keep(parsed.Cluster)
		d.keep(parsed.Shard)
		d.add(parsed.Namespace, whole|namespace)
		switch resource := parsed.Resource; {
		case isTypeName(resource.String()):
			d.keep(parsed.Name)
		case resource.String() == "namespaces":
			d.add(parsed.Name, whole|namespace)
		case resource.Resource == "events": // the object may be deleted
			d.add(parsed.Name[:max(strings.LastIndexByte(parsed.Name, '.'), 0)], whole)
		case !isMadeName(resource.Resource):
			d.add(parsed.Name, whole)
		}
		if release := releaseName().FindStringSubmatch(parsed.Name); release != nil {
			d.add(release[1], whole)
		}
		if field := wordField(parsed.Resource.String()); field != nil {
			learnFrom(d, e, field)
		}
	}
	d.settle()
	return d, nil
}

// releaseName matches the names of Secrets and ConfigMaps with Helm 3 releases.
var releaseName = pattern.New(`^sh\.helm\.release\.v1\.(.+)\.v[0-9]+$`)

// isTypeName reports whether the object names of a resource derive from types or drivers, or are
// names of logical clusters.
func isTypeName(resource string) bool {
	switch resource {
	case "customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io",
		"csidrivers.storage.k8s.io",
		"clustertrustbundles.certificates.k8s.io", "storageversions.internal.apiserver.k8s.io":
		return true
	}
	return strings.HasSuffix(resource, ".kcp.io")
}

// isMadeName reports whether the object names of a resource derive from other names and addresses.
func isMadeName(resource string) bool {
	switch resource {
	case "ipaddresses", "ipamblocks", "ipamhandles", "blockaffinities":
		return true
	}
	return false
}

// wordField returns the path of a field that defines words in the objects of a resource, or nil.
func wordField(resource string) []string {
	switch resource {
	case "customresourcedefinitions.apiextensions.k8s.io", "apiresourceschemas.apis.kcp.io":
		return []string{"spec"}
	case "storageclasses.storage.k8s.io":
		return []string{"provisioner"}
	case "ingressclasses.networking.k8s.io":
		return []string{"spec", "controller"}
	case "gatewayclasses.gateway.networking.k8s.io":
		return []string{"spec", "controllerName"}
	case "statefulsets.apps":
		return []string{"spec", "volumeClaimTemplates"}
	}
	return nil
}

// learnFrom adds the words in a field. Unreadable values are reported later.
func learnFrom(d *dictionary, e *transform.Entry, field []string) {
	content, err := native.Decode(e.Value)
	if e.Undecryptable != nil || err != nil {
		return
	}
	at, _, _ := unstructured.NestedFieldNoCopy(content, field...)
	templates, _ := at.([]any)
	for _, template := range templates {
		template, _ := template.(map[string]any)
		if name, is, _ := unstructured.NestedString(template, "metadata", "name"); is { // part of the names of claims
			d.add(name, whole)
		}
	}
	if templates == nil {
		addWords(d, at, d.vocabulary)
	}
}

// addWords adds the strings and field names in JSON content, except descriptions. Default, enum and
// example values are only constants: names among them are replaced there and in the objects.
func addWords(d *dictionary, content any, add func(text string)) {
	switch v := content.(type) {
	case string:
		add(v)
	case []any:
		for _, child := range v {
			addWords(d, child, add)
		}
	case map[string]any:
		for name, child := range v {
			d.vocabulary(name)
			switch name {
			case "description", "clientConfig", "message":
			case "properties", "patternProperties", "definitions":
				addFields(d, child, add)
			case "default", "enum", "example", "shortNames", "categories":
				addWords(d, child, d.constant)
			default:
				addWords(d, child, add)
			}
		}
	}
}

// addFields adds the fields of a schema. Their names may equal schema keywords.
func addFields(d *dictionary, content any, add func(text string)) {
	fields, is := content.(map[string]any)
	if !is {
		addWords(d, content, add)
	}
	for name, child := range fields {
		d.vocabulary(name)
		addWords(d, child, add)
	}
}

func (s *sanitizer) rename(r *record, key keys.Key) keys.Key {
	if s.names == nil {
		return key
	}
	edit := s.names.edit()
	if key.Namespace != "" {
		key.Namespace = edit.name(key.Namespace)
	}
	key.Name = edit.name(key.Name)
	if to := r.Layout().Format(key); !bytes.Equal(to, r.Key) {
		r.to = to
	}
	return key
}

func (s *sanitizer) edit(r *record, content map[string]any) (changed bool) {
	if s.names == nil {
		return false
	}
	edit := s.names.edit()
	r.wrong = edit.object(content)
	r.left, r.texts = edit.left, edit.replaced
	return edit.replaced > 0
}

// constants holds constants and field names of k8s.io/api and related modules. TestVocabulary
// writes the file.
//
//go:embed vocabulary.txt
var constants string

// vocabulary lists texts that must not change.
func vocabulary() []string {
	out := slices.Concat(strings.Fields(constants), strings.Fields(others), strings.Fields(systemNames))
	for _, t := range inspect.Builtins() {
		out = append(out, t.Resource.String(), t.Kind, t.Singular)
	}
	return out
}

// others lists words with a meaning to servers and controllers beyond the constants of k8s.io/api.
const others = `
	localhost cluster.local linux windows amd64 arm64 http https grpc tcp udp sctp metrics healthz livez readyz true
	false null none default
	prometheus.io/scrape prometheus.io/path prometheus.io/port prometheus.io/scheme
	app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/version app.kubernetes.io/component
	app.kubernetes.io/part-of
	app.kubernetes.io/managed-by k8s-app meta.helm.sh/release-name meta.helm.sh/release-namespace helm.sh/chart Helm
	helm
	node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker
	kubernetes.io/pvc-protection kubernetes.io/pv-protection
	kubectl.kubernetes.io/last-applied-configuration kubectl.kubernetes.io/default-container
	kubectl.kubernetes.io/restartedAt
	kubernetes.io/config.mirror kubernetes.io/config.source kubernetes.io/config.hash kubernetes.io/config.seen
	kubernetes.io/bootstrapping
	rbac-defaults rbac.authorization.kubernetes.io/autoupdate
	control-plane.alpha.kubernetes.io/leader storageclass.kubernetes.io/is-default-class
	ingressclass.kubernetes.io/is-default-class
	pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller pv.kubernetes.io/provisioned-by
	volume.kubernetes.io/storage-provisioner
	endpointslice.kubernetes.io/managed-by endpointslice-controller.k8s.io endpointslicemirroring-controller.k8s.io
	cert-manager.io/inject-ca-from deployment.kubernetes.io/revision pod-template-hash controller-revision-hash
	kube-aggregator.kubernetes.io/automanaged
	onstart requests.cpu requests.memory requests.storage limits.cpu limits.memory ephemeral-storage
	docker.io registry.k8s.io quay.io ghcr.io gcr.io mcr.microsoft.com
	projectcalico.org/metadata projectcalico.org/v3 crd.projectcalico.org/v1`

// systemNames lists names of objects that servers and controllers create and look up.
const systemNames = `
	default kube-system kube-public kube-node-lease kubernetes kube-dns kube-root-ca.crt cluster-info coredns kube-proxy
	kubeadm-config kubelet-config
	extension-apiserver-authentication extension-apiserver-authentication-reader
	kube-apiserver-legacy-service-account-token-tracking
	kube-controller-manager kube-scheduler kube-apiserver cloud-controller-manager cluster-admin admin edit view
	system-cluster-critical system-node-critical
	exempt catch-all global-default leader-election node-high system workload-high workload-low service-accounts probes
	endpoint-controller
	kube-system-service-accounts system-leader-election system-node-high system-nodes workload-leader-election
	cluster root openshift openshift-infra openshift-node openshift-config openshift-config-managed`

// isSystem reports whether name is the name of an object created by a server or controller.
func isSystem(name string) bool {
	return strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "kubeadm:") ||
		slices.Contains(strings.Fields(systemNames), name)
}

// stayingWords lists words of generated names; sanitize does not replace these words.
const stayingWords = " kube node apiserver controller manager scheduler etcd proxy system default token bootstrap sh " +
	"helm release pvc csi "

func stays(word string) bool { return isNumber(word) || strings.Contains(stayingWords, " "+word+" ") }

func isNumber(word string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return len(word) <= longestNumber
	}
	rest, is := strings.CutPrefix(word, "v")
	return is && isVersion(rest)
}

// longestNumber is the length of a time in seconds; a longer number may be an account.
const longestNumber = 10

// isVersion reports whether the text after "v" completes an API version: "1", "1beta2".
func isVersion(rest string) bool {
	major := strings.TrimLeft(rest, "0123456789")
	minor := strings.TrimPrefix(strings.TrimPrefix(major, "alpha"), "beta")
	return major != rest && len(rest) <= 8 && strings.Trim(minor, "0123456789") == "" && (major == "" || minor != major)
}
