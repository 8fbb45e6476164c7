package doctor

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// machines finds what ties an object to the machines of its cluster. It is safe for concurrent use.
type machines struct {
	machineReads
	cas map[string][]byte // of kube-root-ca.crt, by storage prefix
}

// newMachines returns nil unless a restore on other machines is checked.
func (d *doctor) newMachines() *machines {
	if !d.options.NewMachines {
		return nil
	}
	m := &machines{newMachineReads(tied()), map[string][]byte{}}
	for _, s := range d.layouts.Storages() {
		if e := d.get(s.Prefix, "configmaps", "kube-system", "kube-root-ca.crt"); e != nil {
			config, _ := decodeAs[corev1.ConfigMap](e) // reported by checkValue
			m.cas[s.Prefix] = bytes.TrimSpace([]byte(config.Data["ca.crt"]))
		}
	}
	return m
}

// ties returns what ties an object to the machines; nothing of an object that is not readable.
func (m *machines) ties(e *inspect.Entry, l *look) (found []group) {
	key, err := e.ParseKey()
	if m == nil || err != nil || !l.readable() || !isKubernetes(e) {
		return nil
	}
	tie := func(code *finding.Code, subject string) { found = append(found, group{code, subject}) }
	switch name := plain(key.Resource); name {
	case "pods":
		m.podTies(e, tie)
	case "persistentvolumes":
		m.volumeTies(e, tie)
	case "volumeattachments.storage.k8s.io":
		tie(codeVolumeAttached, "")
	case "csinodes.storage.k8s.io", "ciliumnodes.cilium.io", "nodes.longhorn.io", "blockaffinities.crd.projectcalico.org", "blockaffinities.projectcalico.org":
		tie(codeNodeRecords, name)
	case "leases.coordination.k8s.io":
		if isNodeLease(key) {
			tie(codeNodeRecords, name)
		}
	case "secrets":
		m.secretTies(e, key, tie)
	case "configmaps":
		addressTies(e, key, tie)
	case "services":
		m.serviceTies(e, tie)
	case "ranges":
		if r, err := decodeAs[corev1.RangeAllocation](e); err == nil && r.Range != "" {
			tie(codeServiceRange, key.Name+": "+r.Range)
		}
	case "servicecidrs.networking.k8s.io":
		if r, err := decodeAs[networkingv1.ServiceCIDR](e); err == nil && len(r.Spec.CIDRs) > 0 {
			tie(codeServiceRange, key.Name+": "+strings.Join(r.Spec.CIDRs, ", "))
		}
	default:
		if spec := m.workloads[name]; spec != nil {
			workloadTies(spec(e), name, tie)
			break
		}
		m.clientTies(e, key, tie)
	}
	return found
}

// podTies is about a Pod that has not ended.
func (m *machines) podTies(e *inspect.Entry, tie func(*finding.Code, string)) {
	pod, err := m.pod(e)
	if err != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	of := "without a controller"
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			of = "of kind " + o.Kind
		}
	}
	switch of = "Pods " + of; {
	case static:
		tie(codeNodePods, "static Pods, which kubelets start from files")
	case pod.Spec.NodeName != "":
		tie(codeNodePods, of)
	}
	if of == "Pods without a controller" && !static && pinned(&pod.Spec) {
		tie(codeNodePinned, "pods")
	}
}

// workloadTies is about the template of the Pods of a workload, nil for one that starts none.
func workloadTies(spec *corev1.PodSpec, resource string, tie func(*finding.Code, string)) {
	if spec != nil && (spec.NodeName != "" || pinned(spec)) {
		tie(codeNodePinned, resource)
	}
}

// pinned tells whether Pods run on nodes of certain names only.
func pinned(spec *corev1.PodSpec) bool {
	if spec.NodeSelector[corev1.LabelHostname] != "" {
		return true
	}
	a := spec.Affinity
	return a != nil && a.NodeAffinity != nil && names(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
}

// names tells whether each term of a selector names nodes. Local volumes of CSI drivers use labels
// such as topology.topolvm.io/node.
func names(s *corev1.NodeSelector) bool {
	name := func(r corev1.NodeSelectorRequirement) bool {
		_, label, _ := strings.Cut(r.Key, "/")
		return r.Operator == corev1.NodeSelectorOpIn && slices.Contains([]string{"hostname", "node", "nodename"}, label)
	}
	return s != nil && len(s.NodeSelectorTerms) > 0 && !slices.ContainsFunc(s.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchFields) == 0 && !slices.ContainsFunc(t.MatchExpressions, name)
	})
}

func (m *machines) volumeTies(e *inspect.Entry, tie func(*finding.Code, string)) {
	v, err := m.volume(e)
	switch {
	case err != nil:
	case v.Spec.Local != nil:
		tie(codeNodeVolume, "of type local")
	case v.Spec.HostPath != nil:
		tie(codeNodeVolume, "of type hostPath")
	case v.Spec.NodeAffinity != nil && names(v.Spec.NodeAffinity.Required):
		tie(codeNodeVolume, "with an affinity to nodes by name")
	}
}

func (m *machines) secretTies(e *inspect.Entry, key keys.Key, tie func(*finding.Code, string)) {
	if key.Namespace == "kube-system" && (strings.HasSuffix(key.Name, ".node-password.k3s") || strings.HasSuffix(key.Name, ".node-password.rke2")) {
		tie(codeNodePassword, "")
		return
	}
	if s, err := m.secret(e); err == nil && s.Type == corev1.SecretTypeServiceAccountToken {
		tie(codeTokenKey, "")
	}
}

// addresses finds addresses of API servers in ConfigMaps. Others hold none, or more than that.
var addresses = map[string]struct {
	field string
	value *regexp.Regexp
}{
	"kube-public/cluster-info":                     {"kubeconfig", serverOf},
	"kube-system/kube-proxy":                       {"kubeconfig.conf", serverOf},
	"kube-system/kubeadm-config":                   {"ClusterConfiguration", regexp.MustCompile(`(?m)^controlPlaneEndpoint:\s*"?([\w.:\[\]-]+)"?\s*$`)},
	"kube-system/kubernetes-services-endpoint":     {"KUBERNETES_SERVICE_HOST", hostOf},
	"tigera-operator/kubernetes-services-endpoint": {"KUBERNETES_SERVICE_HOST", hostOf},
	"kube-system/cilium-config":                    {"k8s-api-server", hostOf},
}

var (
	serverOf = regexp.MustCompile(`(?m)^\s*server:\s*"?(https?://[\w.:\[\]-]+)/?"?\s*$`)
	hostOf   = regexp.MustCompile(`^((?:https?://)?[\w.:\[\]-]+)/?$`)
)

func addressTies(e *inspect.Entry, key keys.Key, tie func(*finding.Code, string)) {
	at, is := addresses[key.Namespace+"/"+key.Name]
	if !is {
		return
	}
	config, err := decodeAs[corev1.ConfigMap](e)
	if m := at.value.FindStringSubmatch(config.Data[at.field]); err == nil && m != nil {
		tie(codeAPIAddress, finding.Clip(m[1], 200))
	}
}

func (m *machines) serviceTies(e *inspect.Entry, tie func(*finding.Code, string)) {
	s, err := m.service(e)
	if err != nil {
		return
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		tie(codeServiceAddress, "a load balancer")
	}
	if len(s.Spec.ExternalIPs) > 0 {
		tie(codeServiceAddress, "external IPs")
	}
	if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 }) {
		tie(codeServiceAddress, "node ports")
	}
}

// clientTies is about an object that tells API servers how to reach another server.
func (m *machines) clientTies(e *inspect.Entry, key keys.Key, tie func(*finding.Code, string)) {
	ca, url := m.cas[key.Prefix], false
	var bundles [][]byte
	switch name := plain(key.Resource); name {
	case "validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io":
		config, _ := decodeAs[admissionv1.MutatingWebhookConfiguration](e) // reported by checkValue
		for _, hook := range config.Webhooks {
			url = url || hook.ClientConfig.URL != nil
			bundles = append(bundles, hook.ClientConfig.CABundle)
		}
	case "customresourcedefinitions.apiextensions.k8s.io":
		crd, _ := decodeAs[converted](e)
		if by := crd.Spec.Conversion.Webhook; by != nil && by.ClientConfig != nil {
			url, bundles = by.ClientConfig.URL != nil, [][]byte{by.ClientConfig.CABundle}
		}
	case "apiservices.apiregistration.k8s.io":
		s, _ := decodeAs[apiServiceFields](e)
		bundles = [][]byte{s.Spec.CABundle}
	default:
		return
	}
	if url {
		tie(codeWebhookURL, plain(key.Resource))
	}
	if len(ca) > 0 && slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(bytes.TrimSpace(b), ca) }) {
		tie(codeClusterCA, plain(key.Resource))
	}
}

// converted is how a CustomResourceDefinition is converted.
type converted struct {
	Spec struct {
		Conversion struct {
			Webhook *apiextensionsv1.WebhookConversion `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
}

// checkMachines reports what is tied to the machines of the cluster by more than one object.
func (d *doctor) checkMachines() {
	if !d.options.NewMachines {
		return
	}
	var all []string
	for _, n := range d.kept["nodes"] {
		all = append(all, n.Name)
	}
	if len(all) > 0 {
		d.raiseMany(count{len(all), d.kept["nodes"][0].entry.Key}, codeOldNodes, "Node", "%s of the old machines: %s", few(all, 5, ""))
	}
	members, err := d.reader.Snapshot().Members(d.ctx)
	if d.failed(err) {
		return
	}
	var urls []string
	for _, m := range members {
		urls = append(urls, m.Name+"="+strings.Join(m.PeerURLs, ","))
	}
	d.raise(nil, codeNotInFile, "certificates, keys and files of the machines are not in it; members of etcd were: %s", few(urls, 5, ""))
}
