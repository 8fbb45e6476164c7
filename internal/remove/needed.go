package remove

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// isNeeded reports whether the object is a namespace that a cluster cannot live without.
func isNeeded(key keys.Key) bool {
	needed := []string{"default", "kube-system", "kube-public", "kube-node-lease"}
	return key.Resource == schema.GroupResource{Resource: "namespaces"} && slices.Contains(needed, key.Name)
}

const (
	apiServer  = "kube-apiserver"
	controller = "kube-controller-manager"
)

// maker names who makes a deleted object again; "" for nobody. Sources: pkg/controlplane and
// pkg/registry/{rbac,scheduling,flowcontrol}/rest of kube-apiserver, and the controllers
// rootcacertpublisher and serviceaccount.
func maker(key keys.Key, meta encoding.Meta) string {
	if meta.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return "the kubelet of its node, of a static pod,"
	}
	for _, mark := range []map[string]string{meta.Labels, meta.Annotations} {
		for _, own := range [][2]string{
			{"kubernetes.io/bootstrapping", "rbac-defaults"}, {"kube-aggregator.kubernetes.io/automanaged", "onstart"},
			{"apf.kubernetes.io/autoupdate-spec", "true"}, {"apiserver.kubernetes.io/identity", "kube-apiserver"},
		} {
			if len(mark) > 0 && mark[own[0]] == own[1] {
				return apiServer
			}
		}
	}
	switch at := key.Namespace + "/" + key.Name; key.Resource.Resource {
	case "services", "endpoints", "endpointslices":
		return of(at == "default/kubernetes", apiServer)
	case "servicecidrs", "masterleases":
		return of(key.Name == "kubernetes" || key.Resource.Resource == "masterleases", apiServer)
	case "namespaces":
		return of(isNeeded(key), apiServer)
	case "priorityclasses":
		return of(strings.HasPrefix(key.Name, "system-"), apiServer)
	case "configmaps":
		return of(key.Name == "kube-root-ca.crt", controller) + of(slices.Contains(ownMaps(), at), apiServer)
	case "serviceaccounts":
		return of(key.Name == "default", controller)
	}
	return ""
}

// ownMaps are the ConfigMaps that an API server makes.
func ownMaps() []string {
	return []string{"kube-system/extension-apiserver-authentication", "kube-system/kube-apiserver-legacy-service-account-token-tracking"}
}

func of(is bool, who string) string {
	if is {
		return who
	}
	return ""
}

func bindings() schema.GroupResource {
	return schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
}

// isAdmin reports whether a ClusterRoleBinding gives somebody the ClusterRole cluster-admin.
func isAdmin(o *inspect.Object) bool {
	role, _, _ := unstructured.NestedString(o.Content, "roleRef", "name")
	subjects, _, _ := unstructured.NestedSlice(o.Content, "subjects")
	return role == "cluster-admin" && len(subjects) > 0
}

// checkAdmins reports the deletion of the last binding of cluster-admin.
func (r *run) checkAdmins() error {
	if len(r.admins) == 0 {
		return nil
	}
	for o, err := range r.view.Objects(r.ctx, r.types.Of(bindings()), inspect.Selection{}) {
		if err != nil || isAdmin(o) {
			return err
		}
	}
	for _, key := range r.admins {
		r.view.Raise(key, codeLastAdmin.Because("no other ClusterRoleBinding gives anybody the ClusterRole cluster-admin"))
	}
	return nil
}

// checkClaims reports PersistentVolumes whose storage goes because their claims are deleted.
func (r *run) checkClaims() error {
	volumes := r.types.Of(schema.GroupResource{Resource: "persistentvolumes"})
	if len(r.claims) == 0 {
		return nil
	}
	return stream.Each(r.view.Objects(r.ctx, volumes, inspect.Selection{}), func(o *inspect.Object) error {
		claim, _, _ := unstructured.NestedStringMap(o.Content, "spec", "claimRef")
		policy, _, _ := unstructured.NestedString(o.Content, "spec", "persistentVolumeReclaimPolicy")
		lost := policy == string(corev1.PersistentVolumeReclaimDelete) || policy == string(corev1.PersistentVolumeReclaimRecycle)
		if lost && claim["uid"] != "" && r.claims[toUID([]byte(claim["uid"]))] {
			r.view.Raise(string(o.Key), codeStorage.Because("its claim %s/%s is deleted, and its reclaim policy is %s",
				claim["namespace"], claim["name"], policy))
		}
		return nil
	})
}

// strand keeps the Pods on deleted Nodes.
func (r *run) strand() error {
	uids, err := r.freed.Stranded(r.ctx, r.view)
	for _, text := range uids {
		r.stranded = append(r.stranded, toUID([]byte(text)))
	}
	return err
}

// checkFreed reports deletions of the file that go on because what held them goes.
func (r *run) checkFreed() error { return r.freed.Report(r.ctx, r.view) }
