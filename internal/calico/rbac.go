package calico

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// account is a service account of a Calico component.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

// calicoAccounts returns the accounts of manifests, charts and operator, and those of the found
// workloads.
func calicoAccounts(found *installation) map[account]bool {
	accounts := map[account]bool{}
	for _, namespace := range []string{"kube-system", namespaceOperated} {
		for _, name := range []string{"calico-node", "calico-kube-controllers", "calico-typha",
			"calico-cni-plugin", "canal"} {
			accounts[account{namespace, name}] = true
		}
	}
	for _, c := range found.components {
		if name := cmp.Or(text(c.pod, "serviceAccountName"), text(c.pod, "serviceAccount")); name != "" {
			accounts[account{c.namespace, name}] = true
		}
	}
	return accounts
}

// checkRBAC requires that each Calico account in a ClusterRoleBinding may use the new group:
// releases before 3.32 grant only the old group, and a cluster with upgraded images alone has the
// old roles.
func (s *crdSet) checkRBAC(found *installation) error {
	grants, err := s.readGrants(calicoAccounts(found))
	if err != nil {
		return err
	}
	known := false
	for _, g := range grants {
		known = known || len(g.bindings[""]) > 0
		g.check(s, found)
	}
	if !known {
		s.Raise("", codeRBACUnknown.Because("no role in the snapshot is bound to a service account of Calico"))
		s.stepRBAC()
	}
	return nil
}

func (s *crdSet) stepRBAC() {
	s.Report().AddStepBefore("check that the roles of Calico's components grant %s what they grant %s",
		groupV3, groupV1)
}

// grant holds the permissions of one account, by the namespace of the bindings; "" is the whole
// cluster.
type grant struct {
	account  account
	bindings map[string][]string // keys of bindings that name the account, in order
	rules    map[string][]rbacv1.PolicyRule
	partial  bool // an unreadable role or binding may grant more
}

// check reports an account without the permissions to work on v3 records. Most kinds are
// cluster-scoped: a RoleBinding alone neither grants access to records nor shows that the account
// needs it.
func (g *grant) check(s *crdSet, found *installation) {
	for _, namespace := range slices.Sorted(maps.Keys(g.bindings)) {
		if namespace == "" {
			g.checkCluster(s, found)
			continue
		}
		if lacking := g.lacking(s.kinds, namespace); len(lacking) > 0 {
			s.Raise(g.bindings[namespace][0], codeRBACMissing.Because(
				"the roles bound to service account %s in namespace %s grant it %s in %s but not in %s",
				g.account, namespace, phrase.List(lacking, few), groupV1, groupV3).Decided(finding.Noted))
		}
	}
}

func (g *grant) checkCluster(s *crdSet, found *installation) {
	hint := "apply the RBAC of your Calico release (3.32 or later)"
	if found.operated() {
		hint = "let the operator of Calico 3.32 or later reconcile"
	}
	lacking, granted, first := g.lacking(s.kinds, ""), allows(g.rules[""], groupV3, ""), g.bindings[""][0]
	switch {
	case granted && len(lacking) == 0:
	case g.partial:
		s.Raise(first, codeRBACUnknown.Because("no role that can be read grants service account %s enough in %s",
			g.account, groupV3))
		s.stepRBAC()
	case !granted:
		s.Raise(first, codeRBACMissing.Because(
			"the roles bound to service account %s grant nothing in %s; %s, then take a new snapshot",
			g.account, groupV3, hint))
	default:
		s.Raise(first, codeRBACMissing.Because("the roles bound to service account %s grant it %s in %s but not in %s",
			g.account, phrase.List(lacking, few), groupV1, groupV3).Decided(finding.Noted))
	}
}

// lacking lists the kinds granted in the old group by bindings of a namespace, but granted in the
// new group neither by these bindings nor cluster-wide.
func (g *grant) lacking(kinds kindSet, namespace string) (out []string) {
	all := slices.Concat(g.rules[namespace], g.rules[""])
	for _, kd := range kinds {
		there := kd.Namespaced || namespace == ""
		if there && allows(g.rules[namespace], groupV1, kd.V1Plural) && !allows(all, groupV3, kd.Plural) {
			out = append(out, kd.Plural)
		}
	}
	return out
}

// allows reports whether rules grant a resource of a group; "" means any resource.
func allows(rules []rbacv1.PolicyRule, group, resource string) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return has(rule.APIGroups, group) && (resource == "" || has(rule.Resources, resource))
	})
}

// readGrants collects the grants of each account, sorted by account. An unreadable
// ClusterRoleBinding may name any account.
func (s *crdSet) readGrants(accounts map[account]bool) (out []*grant, err error) {
	for a := range accounts {
		out = append(out, &grant{account: a, bindings: map[string][]string{}, rules: map[string][]rbacv1.PolicyRule{}})
	}
	slices.SortFunc(out, func(a, b *grant) int { return cmp.Compare(a.account.String(), b.account.String()) })
	for _, plural := range []string{"clusterrolebindings", "rolebindings"} {
		err := s.each(s.keys.Dir(rbacResource(plural)), func(entry *transform.Entry) error {
			// a ClusterRoleBinding has the same fields
			b, readable := readRBAC[rbacv1.RoleBinding](s.store, entry)
			if readable {
				return s.bind(out, string(entry.Key), &b)
			}
			for _, g := range out {
				g.partial = g.partial || plural == "clusterrolebindings"
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bind adds a binding to the accounts in its subjects. A RoleBinding grants only in its namespace.
func (s *crdSet) bind(all []*grant, key string, b *rbacv1.RoleBinding) error {
	var role *rbacv1.ClusterRole
	readable := true
	for _, g := range all {
		named, meant := g.account.among(b.Subjects)
		if !meant {
			continue
		}
		if role == nil {
			var err error
			if role, readable, err = s.boundRole(b); err != nil {
				return err
			}
		}
		g.rules[b.Namespace] = append(g.rules[b.Namespace], role.Rules...)
		g.partial = g.partial || !readable && b.Namespace == ""
		if !named {
			continue
		}
		g.bindings[b.Namespace] = append(g.bindings[b.Namespace], key)
		deleted := ""
		switch { // a finalizer holds it
		case b.DeletionTimestamp != nil:
			deleted = "the binding"
		case role.DeletionTimestamp != nil:
			deleted = b.RoleRef.Kind + " " + b.RoleRef.Name
		default:
			continue
		}
		s.Raise(key, codeRBACMissing.Because("%s is being deleted, and with it the permissions of "+
			"service account %s", deleted, g.account).
			Decided(finding.Noted))
	}
	return nil
}

// among reports whether subjects name the account, or include it through a group.
func (a account) among(subjects []rbacv1.Subject) (named, meant bool) {
	for _, s := range subjects {
		switch {
		case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == a.namespace && s.Name == a.name,
			s.Kind == rbacv1.UserKind && s.Name == "system:serviceaccount:"+a.namespace+":"+a.name:
			return true, true
		case s.Kind == rbacv1.GroupKind:
			switch s.Name {
			case "system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated":
				meant = true
			}
		}
	}
	return false, meant
}

// boundRole reads the role of a binding, a Role of its namespace or a ClusterRole. A missing role
// grants nothing.
func (s *crdSet) boundRole(b *rbacv1.RoleBinding) (role *rbacv1.ClusterRole, readable bool, err error) {
	key := s.key(rbacResource("clusterroles"), "", b.RoleRef.Name)
	if b.RoleRef.Kind == "Role" {
		key = s.key(rbacResource("roles"), b.Namespace, b.RoleRef.Name)
	}
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return &rbacv1.ClusterRole{}, true, err
	}
	is, readable := readRBAC[rbacv1.ClusterRole](s.store, entry) // a Role has the same first fields
	return &is, readable, nil
}

func rbacResource(plural string) schema.GroupResource {
	return schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}
}

// readRBAC reads an RBAC object, or reports why the object is unreadable.
func readRBAC[T any](s *store, entry *transform.Entry) (out T, readable bool) {
	out, err := native.As[T](encoding.Parse(entry.Value))
	if err == nil && encoding.Detect(entry.Value) == encoding.FormatCBOR {
		err = errors.New("cbor is no format of RBAC objects")
	}
	if err != nil {
		s.Raise(string(entry.Key), codeRBACUnknown.Because("%v", err))
	}
	return out, err == nil
}
