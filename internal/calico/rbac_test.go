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
	return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
}

// role binds a ClusterRole of that name to the subjects.
func (in *input) role(name string, rules []rbacv1.PolicyRule, subjects ...rbacv1.Subject) (bindingKey string) {
	meta := metav1.ObjectMeta{Name: name}
	in.native("/registry/clusterroles/"+name, "rbac.authorization.k8s.io/v1", "ClusterRole",
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	bindingKey = "/registry/clusterrolebindings/" + name
	in.native(bindingKey, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: name},
	})
	return bindingKey
}

// Rules of Calico 3.31 and 3.32, shortened.
var (
	oldRules = []rbacv1.PolicyRule{rule([]string{""}, "pods", "nodes"),
		rule([]string{groupV1}, "ippools", "ipamblocks", "ipamconfigs")}
	newRules = []rbacv1.PolicyRule{rule([]string{""}, "pods"),
		rule([]string{groupV1, groupV3}, "ippools", "ipamblocks", "ipamconfigs", "ipamconfigurations")}
)

func TestRBACGranted(t *testing.T) {
	in := newInput(t)
	in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	in.role("calico-kube-controllers", []rbacv1.PolicyRule{rule([]string{"*"}, "*")},
		subjectOf("User", "system:serviceaccount:kube-system:calico-kube-controllers"))
	in.role("other", oldRules, serviceAccount("kube-system", "other"), serviceAccount("default", "calico-node"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
	require.Empty(t, r.byHand())
}

// TestRBACMissing: an account with access to the old group only is refused, with the binding that
// names it.
func TestRBACMissing(t *testing.T) {
	in := newInput(t)
	node := in.role("calico-node", oldRules, serviceAccount("kube-system", "calico-node"))
	typha := in.role("calico-typha", nil, serviceAccount("calico-system", "calico-typha"))
	custom := in.role("net-agent", oldRules, serviceAccount("networking", "agent"))
	in.daemonSet(daemonSet("networking", "calico-node", podTemplate("agent", "calico-node", "calico/node:v3.32.0")))
	path := in.write()
	r := planOn(t, path, planFunc(preflighting))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error rbac-missing " + typha, "error rbac-missing " + node,
		"error rbac-missing " + custom}, r.problems())
	require.Contains(t, r.reason(t, codeRBACMissing.Name, node),
		"kube-system/calico-node grant nothing in projectcalico.org; apply the RBAC")

	r = planOn(t, path, planFunc(preflighting), codeRBACMissing.Name)
	require.NoError(t, r.err)
}

// roleBinding binds a Role with those rules to the subjects, in the namespace alone; without rules
// the ClusterRole cluster-admin.
func (in *input) roleBinding(
	namespace, name string, rules []rbacv1.PolicyRule, subjects ...rbacv1.Subject,
) (key string) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	if rules != nil {
		ref.Kind, ref.Name = "Role", name
		in.native("/registry/roles/"+namespace+"/"+name, "rbac.authorization.k8s.io/v1", "Role",
			&rbacv1.Role{ObjectMeta: meta, Rules: rules})
	}
	key = "/registry/rolebindings/" + namespace + "/" + name
	in.native(key, "rbac.authorization.k8s.io/v1", "RoleBinding",
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
	return key
}

// TestRBACRoleBinding: a RoleBinding grants within its namespace, without objects of most kinds.
// The check covers namespaced kinds and ignores the account's cluster-wide access.
func TestRBACRoleBinding(t *testing.T) {
	plugin := serviceAccount("kube-system", "calico-cni-plugin")
	in := newInput(t)
	in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	in.roleBinding("kube-system", "plugin", nil, plugin)
	in.roleBinding("kube-system", "leases", []rbacv1.PolicyRule{rule([]string{"coordination.k8s.io"}, "leases")},
		serviceAccount("kube-system", "calico-typha"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err, "%v", r.Problems)
	require.Empty(t, r.Problems)

	old := in.roleBinding("team-a", "old", []rbacv1.PolicyRule{rule([]string{groupV1}, "networkpolicies", "networksets",
		"ippools")}, plugin)
	in.roleBinding("team-a", "sets", []rbacv1.PolicyRule{rule([]string{groupV3}, "networksets")}, plugin)
	in.roleBinding("team-b", "both", []rbacv1.PolicyRule{rule([]string{groupV1, groupV3}, "*")}, plugin)
	r = planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-missing " + old}, r.problems())
	require.Equal(t, "the roles bound to service account kube-system/calico-cni-plugin in namespace team-a grant it "+
		"networkpolicies in crd.projectcalico.org but not in projectcalico.org",
		r.reason(t, codeRBACMissing.Name, old))

	in = newInput(t)
	in.roleBinding("kube-system", "plugin", nil, plugin)
	r = planOn(t, in.write(), planFunc(preflighting))
	require.Equal(t, []string{"warning rbac-unknown "}, r.problems(), "no account is bound in the whole cluster")
}

// TestRBACDeleted: the grants of a terminating role or binding end with it.
func TestRBACDeleted(t *testing.T) {
	in := newInput(t)
	node := in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	now := metav1.Now()
	in.native("/registry/clusterroles/calico-node", "rbac.authorization.k8s.io/v1", "ClusterRole", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "calico-node", DeletionTimestamp: &now, Finalizers: []string{"a/b"}},
		Rules:      newRules})
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-missing " + node}, r.problems())
	require.Equal(t, "ClusterRole calico-node is being deleted, and with it the permissions of service account "+
		"kube-system/calico-node", r.reason(t, codeRBACMissing.Name, node))

	in.role("calico-node", newRules, serviceAccount("kube-system", "calico-node"))
	in.native(node, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "calico-node", DeletionTimestamp: &now, Finalizers: []string{"a/b"}},
		Subjects:   []rbacv1.Subject{serviceAccount("kube-system", "calico-node")},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "calico-node"}})
	r = planOn(t, in.write(), planFunc(preflighting))
	require.Equal(t, []string{"warning rbac-missing " + node}, r.problems())
	require.Contains(t, r.reason(t, codeRBACMissing.Name, node), "the binding is being deleted, and")
}

// TestRBACPart: kinds granted only in the old group are named.
func TestRBACPart(t *testing.T) {
	in := newInput(t)
	node := in.role("calico-node", []rbacv1.PolicyRule{rule([]string{groupV1}, "ippools", "ipamconfigs"),
		rule([]string{groupV3}, "ippools")}, serviceAccount("kube-system", "calico-node"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-missing " + node}, r.problems())
	require.Contains(t, r.reason(t, codeRBACMissing.Name, node),
		"grant it ipamconfigurations in crd.projectcalico.org but not in projectcalico.org")
}

// TestRBACGroups: grants of a group of accounts count, but a group does not prove an account
// exists.
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

// TestRBACStored: JSON is readable too; a missing role grants nothing. Unreadable objects are
// named, and their grants are unknown.
func TestRBACStored(t *testing.T) {
	in := newInput(t)
	binding, err := json.Marshal(map[string]any{
		"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1beta1",
		"metadata": map[string]any{"name": "b"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "calico-node", "namespace": "kube-system"}},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "r"},
	})
	require.NoError(t, err)
	key := "/registry/clusterrolebindings/b"
	in.put(key, binding)
	require.Equal(t, []string{"error rbac-missing " + key}, planOn(t, in.write(), planFunc(preflighting)).problems())

	in.put("/registry/clusterroles/r", []byte("k8s:enc:aescbc:v1:k:00"))
	in.put("/registry/rolebindings/kube-system/cbor", []byte("\xd9\xd9\xf7\xa0"))
	require.Equal(t, []string{"warning rbac-unknown /registry/clusterroles/r",
		"warning rbac-unknown /registry/rolebindings/kube-system/cbor", "warning rbac-unknown " + key},
		planOn(t, in.write(), planFunc(preflighting)).problems())

	in.del("/registry/clusterroles/r")
	in.put("/registry/clusterrolebindings/other", []byte("{"))
	require.Equal(t, []string{"warning rbac-unknown /registry/clusterrolebindings/other",
		"warning rbac-unknown /registry/rolebindings/kube-system/cbor", "warning rbac-unknown " + key},
		planOn(t, in.write(), planFunc(preflighting)).problems(), "the other binding may grant it")
	in.del("/registry/clusterrolebindings/other")

	role, err := json.Marshal(map[string]any{
		"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": map[string]any{"name": "r"},
		"rules": []any{map[string]any{"apiGroups": []any{groupV3}, "resources": []any{"*"}, "verbs": []any{"*"}}},
	})
	require.NoError(t, err)
	in.put("/registry/clusterroles/r", role)
	in.del("/registry/rolebindings/kube-system/cbor")
	require.Empty(t, planOn(t, in.write(), planFunc(preflighting)).problems())
}
