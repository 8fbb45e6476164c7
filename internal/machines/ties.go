package machines

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/keys"
)

// Tie is a property that ties an object to the machines of its cluster.
type Tie struct {
	Code    *finding.Code
	Subject string // common property of objects with such a tie, for people; "" for none
	Node    string // the name of the machine's Node; "" if unknown
}

// Finder finds ties. It is safe for concurrent use.
type Finder struct {
	reads
	cas     map[string][]byte                         // of kube-root-ca.crt, by storage prefix
	outside map[string][]admissionv1.ServiceReference // the Services of outside hosts, by storage prefix
}

// NewFinder returns a Finder for the storages of src below these prefixes.
func NewFinder(ctx context.Context, src Source, prefixes ...string) (*Finder, error) {
	f := &Finder{newReads(), map[string][]byte{}, map[string][]admissionv1.ServiceReference{}}
	for _, prefix := range prefixes {
		s := Storage{Source: src, Prefix: prefix}
		config, err := read[corev1.ConfigMap](ctx, s, "configmaps", "kube-system", "kube-root-ca.crt")
		if err != nil {
			return nil, err
		}
		if config != nil {
			f.cas[prefix] = bytes.TrimSpace([]byte(config.Data["ca.crt"]))
		}
		if f.outside[prefix], err = s.allOutside(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Ties returns the ties of a readable object of a Kubernetes API server to the machines.
func (f *Finder) Ties(e *inspect.Entry) (found []Tie) {
	key, err := e.ParseKey()
	if err != nil {
		return nil
	}
	tie := func(code *finding.Code, subject, node string) { found = append(found, Tie{code, subject, node}) }
	switch name := key.Resource.String(); name {
	case "pods":
		f.podTies(e, tie)
	case "persistentvolumes":
		f.volumeTies(e, tie)
	case "volumeattachments.storage.k8s.io":
		attached, _ := native.As[storagev1.VolumeAttachment](e.ParseValue())
		tie(CodeVolumeAttached, "", attached.Spec.NodeName)
	case "csinodes.storage.k8s.io", "ciliumnodes.cilium.io", "nodes.longhorn.io":
		tie(CodeNodeRecords, name, key.Name)
	case "blockaffinities.crd.projectcalico.org", "blockaffinities.projectcalico.org":
		node, _ := encoding.Get(e.Value, "spec", "node") // undecodable values are reported elsewhere
		text, _ := node.(string)
		tie(CodeNodeRecords, name, text)
	case "leases.coordination.k8s.io":
		if IsNodeLease(key) {
			tie(CodeNodeRecords, name, key.Name)
		}
	case "secrets":
		f.secretTies(e, key, tie)
	case "configmaps":
		addressTies(e, key, tie)
	case "services":
		f.serviceTies(e, tie)
	case "ranges", "servicecidrs.networking.k8s.io":
		rangeTies(e, key, tie)
	case "storageclasses.storage.k8s.io", "runtimeclasses.node.k8s.io":
		classTies(e, name, tie)
	case "csistoragecapacities.storage.k8s.io":
		capacityTies(e, name, tie)
	case "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io",
		"podcertificaterequests.certificates.k8s.io":
		deviceTies(e, name, tie)
	case "persistentvolumeclaims":
		claimTies(e, name, tie)
	case "clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io":
		bindingTies(e, name, tie)
	default:
		if spec := f.templates[name]; spec != nil {
			workloadTies(spec(e), name, tie)
			break
		}
		f.clientTies(e, key, tie)
	}
	return found
}

// addTie adds a tie of one object.
type addTie func(code *finding.Code, subject, node string)

// IsNodeLease reports whether a key is that of a Lease that a node renews.
func IsNodeLease(key keys.Key) bool {
	return key.Namespace == corev1.NamespaceNodeLease &&
		key.Resource == schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
}

// Removes reports whether an annotation of a Node makes k3s or RKE2 remove the member of that name
// from etcd: etcd.k3s.cattle.io/remove and etcd.rke2.cattle.io/remove (k3s, pkg/etcd).
func Removes(annotation, value string) bool {
	return strings.EqualFold(value, "true") && strings.HasPrefix(annotation, "etcd.") &&
		strings.HasSuffix(annotation, ".cattle.io/remove")
}

// rangeTies finds the address and port ranges of Services.
func rangeTies(e *inspect.Entry, key keys.Key, tie addTie) {
	if key.Resource.Resource == "ranges" {
		if r, err := native.As[corev1.RangeAllocation](e.ParseValue()); err == nil && r.Range != "" {
			tie(CodeServiceRange, key.Name+": "+r.Range, "")
		}
		return
	}
	if r, err := native.As[networkingv1.ServiceCIDR](e.ParseValue()); err == nil && len(r.Spec.CIDRs) > 0 {
		tie(CodeServiceRange, key.Name+": "+strings.Join(r.Spec.CIDRs, ", "), "")
	}
}

// BarePods is the subject of Pods without a controller.
const BarePods = "Pods without a controller"

// podTies finds the ties of an unfinished Pod.
func (f *Finder) podTies(e *inspect.Entry, tie addTie) {
	pod, err := f.pod(e)
	if err != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	of := BarePods
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			of = "Pods of kind " + o.Kind
		}
	}
	switch {
	case static:
		tie(CodeNodePods, "static Pods, which kubelets start from files", pod.Spec.NodeName)
	case pod.Spec.NodeName != "":
		tie(CodeNodePods, of, pod.Spec.NodeName)
	}
	if of == BarePods && !static && pinned(&pod.Spec) {
		tie(CodeNodePinned, "pods", "")
	}
}

// workloadTies finds the ties of a workload's Pod template, nil if it has none.
func workloadTies(spec *corev1.PodSpec, resource string, tie addTie) {
	if spec != nil && (spec.NodeName != "" || pinned(spec)) {
		tie(CodeNodePinned, resource, "")
	}
}

// pinned reports whether Pods run only on named nodes.
func pinned(spec *corev1.PodSpec) bool {
	if spec.NodeSelector[corev1.LabelHostname] != "" {
		return true
	}
	a := spec.Affinity
	return a != nil && a.NodeAffinity != nil && names(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
}

// names reports whether each term of a selector names nodes.
func names(s *corev1.NodeSelector) bool { return len(NodesOf(s)) > 0 }

// NodesOf returns the nodes that a selector names, nil if one of its terms names none. Local
// volumes of CSI drivers use labels such as topology.topolvm.io/node.
func NodesOf(s *corev1.NodeSelector) (all []string) {
	if s == nil {
		return nil
	}
	for _, t := range s.NodeSelectorTerms {
		before := len(all)
		for _, r := range t.MatchExpressions {
			if r.Operator == corev1.NodeSelectorOpIn && isName(r.Key) {
				all = append(all, r.Values...)
			}
		}
		for _, r := range t.MatchFields {
			all = append(all, r.Values...)
		}
		if len(all) == before {
			return nil
		}
	}
	return all
}

// isName reports whether the values of a node label are node names.
func isName(label string) bool {
	_, name, _ := strings.Cut(label, "/")
	return slices.Contains([]string{"hostname", "node", "nodename"}, name)
}

func (f *Finder) volumeTies(e *inspect.Entry, tie addTie) {
	v, err := f.volume(e)
	switch {
	case err != nil:
	case v.Spec.Local != nil:
		tie(CodeNodeVolume, "of type local", "")
	case v.Spec.HostPath != nil:
		tie(CodeNodeVolume, "of type hostPath", "")
	case v.Spec.NodeAffinity != nil && names(v.Spec.NodeAffinity.Required):
		tie(CodeNodeVolume, "with an affinity to nodes by name", "")
	}
}

func (f *Finder) secretTies(e *inspect.Entry, key keys.Key, tie addTie) {
	if node := PasswordOf(key); node != "" {
		tie(CodeNodePassword, "", node)
		return
	}
	if s, err := f.secret(e); err == nil && s.Type == corev1.SecretTypeServiceAccountToken &&
		len(s.Data[corev1.ServiceAccountTokenKey]) > 0 {
		tie(CodeTokenKey, "", "")
	}
}

// PasswordOf returns the node whose password k3s or RKE2 keeps in a Secret; "" for none.
func PasswordOf(key keys.Key) string {
	for _, suffix := range []string{".node-password.k3s", ".node-password.rke2"} {
		if node, is := strings.CutSuffix(key.Name, suffix); is && key.Namespace == "kube-system" {
			return node
		}
	}
	return ""
}

var (
	serverOf   = pattern.New(`(?m)^\s*server:\s*"?(https?://[\w.:\[\]-]+)/?"?\s*$`)
	endpointOf = pattern.New(`(?m)^controlPlaneEndpoint:\s*"?([\w.:\[\]-]+)"?\s*$`)
	hostOf     = pattern.New(`^((?:https?://)?[\w.:\[\]-]+)/?$`)
)

// addressOf returns the field of a ConfigMap with the address of an API server, and a pattern of
// the address. Other ConfigMaps have no address, or only one of several addresses.
func addressOf(configMap string) (field string, value *regexp.Regexp) {
	switch configMap {
	case "kube-public/cluster-info":
		return "kubeconfig", serverOf()
	case "kube-system/kube-proxy":
		return "kubeconfig.conf", serverOf()
	case "kube-system/kubeadm-config":
		return "ClusterConfiguration", endpointOf()
	case "kube-system/kubernetes-services-endpoint", "tigera-operator/kubernetes-services-endpoint":
		return "KUBERNETES_SERVICE_HOST", hostOf()
	case "kube-system/cilium-config":
		return "k8s-api-server", hostOf()
	}
	return "", nil
}

func addressTies(e *inspect.Entry, key keys.Key, tie addTie) {
	field, value := addressOf(key.Namespace + "/" + key.Name)
	if value == nil {
		return
	}
	config, err := native.As[corev1.ConfigMap](e.ParseValue())
	if m := value.FindStringSubmatch(config.Data[field]); err == nil && m != nil {
		tie(CodeAPIAddress, finding.Clip(m[1], 200), "")
	}
}

func (f *Finder) serviceTies(e *inspect.Entry, tie addTie) {
	s, err := f.service(e)
	if err != nil {
		return
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		tie(CodeServiceAddress, "a load balancer", "")
	}
	if len(s.Spec.ExternalIPs) > 0 {
		tie(CodeServiceAddress, "external IPs", "")
	}
	if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 }) {
		tie(CodeServiceAddress, "node ports", "")
	}
}

// clientTies finds the ties of an object that tells API servers how to reach another server.
func (f *Finder) clientTies(e *inspect.Entry, key keys.Key, tie addTie) {
	ca, outside := f.cas[key.Prefix], false
	leaves := func(url *string, service *admissionv1.ServiceReference) bool {
		return url != nil || service != nil && slices.ContainsFunc(f.outside[key.Prefix],
			func(s admissionv1.ServiceReference) bool {
				return s.Namespace == service.Namespace && s.Name == service.Name
			})
	}
	var bundles [][]byte
	switch name := key.Resource.String(); name {
	case "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":
		config, _ := native.As[admissionv1.MutatingWebhookConfiguration](e.ParseValue()) // reported by checkValue
		for _, hook := range config.Webhooks {
			outside = outside || leaves(hook.ClientConfig.URL, hook.ClientConfig.Service)
			bundles = append(bundles, hook.ClientConfig.CABundle)
		}
	case "customresourcedefinitions.apiextensions.k8s.io":
		crd, _ := native.As[converted](e.ParseValue())
		if by := crd.Spec.Conversion.Webhook; by != nil && by.ClientConfig != nil {
			service := (*admissionv1.ServiceReference)(by.ClientConfig.Service)
			outside, bundles = leaves(by.ClientConfig.URL, service), [][]byte{by.ClientConfig.CABundle}
		}
	case "apiservices.apiregistration.k8s.io":
		s, _ := native.As[APIService](e.ParseValue())
		outside, bundles = leaves(nil, s.Spec.Service), [][]byte{s.Spec.CABundle}
	default:
		return
	}
	if outside {
		tie(CodeWebhookURL, key.Resource.String(), "")
	}
	if len(ca) > 0 && slices.ContainsFunc(bundles, func(b []byte) bool { return bytes.Equal(bytes.TrimSpace(b), ca) }) {
		tie(CodeClusterCA, key.Resource.String(), "")
	}
}

// converted has the conversion webhook of a CustomResourceDefinition.
type converted struct {
	Spec struct {
		Conversion struct {
			Webhook *apiextensionsv1.WebhookConversion `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
}
