package calico

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/transform"
)

func rule(groups []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: []string{"get", "list", "watch"}}
}

func serviceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

func subjectOf(kind, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: kind, APIGroup: groupRBAC, Name: name}
}

// role binds a ClusterRole of that name to the subjects.
func (in *input) role(name string, rules []rbacv1.PolicyRule, subjects ...rbacv1.Subject) (bindingKey string) {
	meta := metav1.ObjectMeta{Name: name}
	in.native("/registry/clusterroles/"+name, "rbac.authorization.k8s.io/v1", "ClusterRole", &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	bindingKey = "/registry/clusterrolebindings/" + name
	in.native(bindingKey, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: groupRBAC, Kind: "ClusterRole", Name: name},
	})
	return bindingKey
}

// Rules as Calico 3.31 and 3.32 ship them, shortened.
var (
	oldRules = []rbacv1.PolicyRule{rule([]string{""}, "pods", "nodes"), rule([]string{groupV1}, "ippools", "ipamblocks", "ipamconfigs")}
	newRules = []rbacv1.PolicyRule{rule([]string{""}, "pods"), rule([]string{groupV1, groupV3}, "ippools", "ipamblocks", "ipamconfigs", "ipamconfigurations")}
)

func TestRBACGranted(t *testing.T) {
	in := newInput(t)
	in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	in.role("calico-kube-controllers", []rbacv1.PolicyRule{rule([]string{"*"}, "*")}, subjectOf("User", "system:serviceaccount:kube-system:calico-kube-controllers"))
	in.role("other", oldRules, serviceAccount("kube-system", "other"), serviceAccount("default", "calico-node"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
	require.Empty(t, r.byHand())
}

// TestRBACMissing: an account that may use the old group only is refused, each with the binding that names it.
func TestRBACMissing(t *testing.T) {
	in := newInput(t)
	node := in.role("calico-node", oldRules, serviceAccount("kube-system", "calico-node"))
	typha := in.role("calico-typha", nil, serviceAccount("calico-system", "calico-typha"))
	custom := in.role("net-agent", oldRules, serviceAccount("networking", "agent"))
	in.daemonSet(daemonSet("networking", "calico-node", podTemplate("agent", "calico-node", "calico/node:v3.32.0")))
	plugin := "/registry/rolebindings/kube-system/plugin"
	in.native(plugin, "rbac.authorization.k8s.io/v1", "RoleBinding", &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plugin"}, Subjects: []rbacv1.Subject{serviceAccount("kube-system", "calico-cni-plugin")},
		RoleRef: rbacv1.RoleRef{APIGroup: groupRBAC, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	path := in.write()
	r := planOn(t, path, planFunc(preflighting))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error rbac-missing " + typha, "error rbac-missing " + plugin, "error rbac-missing " + node, "error rbac-missing " + custom}, r.problems())
	require.Contains(t, r.reason(t, codeRBACMissing, node), "kube-system/calico-node grant nothing in projectcalico.org; apply the RBAC")

	r = planOn(t, path, planFunc(preflighting), codeRBACMissing)
	require.NoError(t, r.err)
}

// TestRBACPart: what the old group grants and the new one does not is named.
func TestRBACPart(t *testing.T) {
	in := newInput(t)
	node := in.role("calico-node", []rbacv1.PolicyRule{rule([]string{groupV1}, "ippools", "ipamconfigs"), rule([]string{groupV3}, "ippools")},
		serviceAccount("kube-system", "calico-node"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-missing " + node}, r.problems())
	require.Contains(t, r.reason(t, codeRBACMissing, node), "grant it ipamconfigurations in crd.projectcalico.org but not in projectcalico.org")
}

// TestRBACGroups: what a group of accounts is granted counts, but a group does not show that an account is there.
func TestRBACGroups(t *testing.T) {
	in := newInput(t)
	in.role("all", newRules, subjectOf("Group", "system:serviceaccounts:kube-system"))
	path := in.write()
	r := planOn(t, path, planFunc(preflighting))
	require.Equal(t, []string{"warning rbac-unknown "}, r.problems())

	in.role("calico-node", oldRules, serviceAccount("kube-system", "calico-node"))
	r = planOn(t, in.write(), planFunc(preflighting))
	require.Empty(t, r.Problems)
}

// TestRBACStored: JSON is read as well; a role that is gone or encrypted grants nothing, and what cannot be read is named.
func TestRBACStored(t *testing.T) {
	in := newInput(t)
	binding, err := json.Marshal(map[string]any{
		"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1beta1", "metadata": map[string]any{"name": "b"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "calico-node", "namespace": "kube-system"}},
		"roleRef":  map[string]any{"apiGroup": groupRBAC, "kind": "ClusterRole", "name": "r"},
	})
	require.NoError(t, err)
	key := "/registry/clusterrolebindings/b"
	in.put(key, binding)
	require.Equal(t, []string{"error rbac-missing " + key}, planOn(t, in.write(), planFunc(preflighting)).problems())

	in.put("/registry/clusterroles/r", []byte("k8s:enc:aescbc:v1:k:00"))
	in.put("/registry/rolebindings/kube-system/cbor", []byte("\xd9\xd9\xf7\xa0"))
	require.Equal(t, []string{"warning rbac-unknown /registry/clusterroles/r", "warning rbac-unknown /registry/rolebindings/kube-system/cbor", "error rbac-missing " + key},
		planOn(t, in.write(), planFunc(preflighting)).problems())

	role, err := json.Marshal(map[string]any{
		"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": map[string]any{"name": "r"},
		"rules": []any{map[string]any{"apiGroups": []any{groupV3}, "resources": []any{"*"}, "verbs": []any{"*"}}},
	})
	require.NoError(t, err)
	in.put("/registry/clusterroles/r", role)
	in.del("/registry/rolebindings/kube-system/cbor")
	require.Empty(t, planOn(t, in.write(), planFunc(preflighting)).problems())
}
