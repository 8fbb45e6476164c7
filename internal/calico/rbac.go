package calico

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

const groupRBAC = "rbac.authorization.k8s.io"

// account is a service account that a Calico component runs under.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

// calicoAccounts are the accounts that manifests, charts and operator use, and those of the
// workloads that were found.
func calicoAccounts(found *installation) map[account]bool {
	accounts := map[account]bool{}
	for _, namespace := range []string{"kube-system", namespaceOperated} {
		for _, name := range []string{"calico-node", "calico-kube-controllers", "calico-typha", "calico-cni-plugin", "canal"} {
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

// checkRBAC demands that each Calico account in a ClusterRoleBinding may use the new group:
// releases before 3.32 grant the old one only, and a cluster upgraded by images alone has their
// roles.
func (s *crdSet) checkRBAC(found *installation) error {
	grants, err := s.readGrants(calicoAccounts(found))
	if err != nil {
		return err
	}
	told := false
	for _, g := range grants {
		told = told || len(g.bindings) > 0
		g.check(s, found)
	}
	if !told {
		s.Raise("", codeRBACUnknown.Because("no role in the snapshot is bound to a service account of Calico"))
		s.stepRBAC()
	}
	return nil
}

func (s *crdSet) stepRBAC() {
	s.Report().AddStepBefore("check that the roles of Calico's components grant %s what they grant %s", groupV3, groupV1)
}

// grant is what one account is allowed in the whole cluster, and beside that in single namespaces.
type grant struct {
	account account
	allowance
	within  map[string]*allowance // by namespace
	partial bool                  // a role or a binding that may grant more cannot be read
}

// allowance is what bindings of one scope allow.
type allowance struct {
	bindings []string // keys of those that name the account, in order
	rules    []rbacv1.PolicyRule
}

// at is the allowance in a namespace, "" for the whole cluster.
func (g *grant) at(namespace string) *allowance {
	if namespace == "" {
		return &g.allowance
	}
	if g.within[namespace] == nil {
		g.within[namespace] = &allowance{}
	}
	return g.within[namespace]
}

// check reports an account whose roles do not let it work on v3 records. Most kinds are
// cluster-scoped, so that a RoleBinding alone neither lets an account work on records nor shows
// that it should.
func (g *grant) check(s *crdSet, found *installation) {
	if len(g.bindings) > 0 {
		g.checkCluster(s, found)
	}
	for _, namespace := range slices.Sorted(maps.Keys(g.within)) {
		a := g.within[namespace]
		lacking := a.lacking(s.kinds, g.rules, true)
		if len(lacking) > 0 && len(a.bindings) > 0 {
			s.Raise(a.bindings[0], codeRBACMissing.Because("the roles bound to service account %s in namespace %s grant it %s in %s but not in %s",
				g.account, namespace, phrase.List(lacking, few), groupV1, groupV3).Decided(finding.Noted))
		}
	}
}

func (g *grant) checkCluster(s *crdSet, found *installation) {
	hint := "apply the RBAC of your Calico release (3.32 or later)"
	if found.operated() {
		hint = "let the operator of Calico 3.32 or later reconcile"
	}
	lacking := g.lacking(s.kinds, nil, false)
	switch {
	case g.allowsAny(groupV3) && len(lacking) == 0:
	case g.partial:
		s.Raise(g.bindings[0], codeRBACUnknown.Because("no role that can be read grants service account %s enough in %s", g.account, groupV3))
		s.stepRBAC()
	case !g.allowsAny(groupV3):
		s.Raise(g.bindings[0], codeRBACMissing.Because(
			"the roles bound to service account %s grant nothing in %s; %s, then take a new snapshot", g.account, groupV3, hint))
	default:
		s.Raise(g.bindings[0], codeRBACMissing.Because("the roles bound to service account %s grant it %s in %s but not in %s",
			g.account, phrase.List(lacking, few), groupV1, groupV3).Decided(finding.Noted))
	}
}

// lacking lists the kinds that are granted in the old group, but in the new one neither here nor by
// more.
func (a *allowance) lacking(kinds kindSet, more []rbacv1.PolicyRule, namespaced bool) (out []string) {
	all := allowance{rules: slices.Concat(a.rules, more)}
	for _, kd := range kinds {
		if (kd.Namespaced || !namespaced) && a.allows(groupV1, kd.V1Plural) && !all.allows(groupV3, kd.Plural) {
			out = append(out, kd.Plural)
		}
	}
	return out
}

func (a *allowance) allowsAny(group string) bool {
	return slices.ContainsFunc(a.rules, func(rule rbacv1.PolicyRule) bool { return hasOrAll(rule.APIGroups, group) })
}

func (a *allowance) allows(group, resource string) bool {
	return slices.ContainsFunc(a.rules, func(rule rbacv1.PolicyRule) bool {
		return hasOrAll(rule.APIGroups, group) && hasOrAll(rule.Resources, resource)
	})
}

func hasOrAll(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// readGrants finds what each account is granted, in their order. A ClusterRoleBinding that cannot
// be read may be of any of them.
func (s *crdSet) readGrants(accounts map[account]bool) (out []*grant, err error) {
	for a := range accounts {
		out = append(out, &grant{account: a, within: map[string]*allowance{}})
	}
	slices.SortFunc(out, func(a, b *grant) int { return cmp.Compare(a.account.String(), b.account.String()) })
	for _, plural := range []string{"clusterrolebindings", "rolebindings"} {
		err := s.each(s.keys.Dir(schema.GroupResource{Group: groupRBAC, Resource: plural}), func(entry *transform.Entry) error {
			var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			if err := decodeRBAC(entry.Value, &b); err != nil {
				s.Raise(string(entry.Key), codeRBACUnknown.Because("%v", err))
				for _, g := range out {
					g.partial = g.partial || plural == "clusterrolebindings"
				}
				return nil
			}
			return s.bind(out, string(entry.Key), &b)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bind adds a binding to the accounts it names. One of a namespace grants there alone.
func (s *crdSet) bind(all []*grant, key string, b *rbacv1.RoleBinding) error {
	var role *rbacv1.ClusterRole
	readable := true
	for _, one := range all {
		named, meant := one.account.among(b.Subjects)
		if !meant {
			continue
		}
		if role == nil {
			var err error
			if role, readable, err = s.boundRole(b); err != nil {
				return err
			}
		}
		a := one.at(b.Namespace)
		a.rules = append(a.rules, role.Rules...)
		one.partial = one.partial || !readable && b.Namespace == ""
		if !named {
			continue
		}
		a.bindings = append(a.bindings, key)
		deleted := ""
		switch { // a finalizer holds it
		case b.DeletionTimestamp != nil:
			deleted = "the binding"
		case role.DeletionTimestamp != nil:
			deleted = b.RoleRef.Kind + " " + b.RoleRef.Name
		default:
			continue
		}
		s.Raise(key, codeRBACMissing.Because("%s is being deleted, and with it goes what it grants to service account %s", deleted, one.account).
			Decided(finding.Noted))
	}
	return nil
}

// among says whether subjects name the account, or mean it by one of its groups.
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

// boundRole reads the role that a binding names, a Role of its namespace or a ClusterRole. A
// missing one grants nothing.
func (s *crdSet) boundRole(b *rbacv1.RoleBinding) (role *rbacv1.ClusterRole, readable bool, err error) {
	key := s.key(schema.GroupResource{Group: groupRBAC, Resource: "clusterroles"}, "", b.RoleRef.Name)
	if b.RoleRef.Kind == "Role" {
		key = s.key(schema.GroupResource{Group: groupRBAC, Resource: "roles"}, b.Namespace, b.RoleRef.Name)
	}
	role = &rbacv1.ClusterRole{} // a Role has the same first fields
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return role, true, err
	}
	bad := decodeRBAC(entry.Value, role)
	if bad != nil {
		s.Raise(string(key), codeRBACUnknown.Because("%v", bad))
	}
	return role, bad == nil, nil
}

// decodeRBAC reads an RBAC object.
func decodeRBAC(value []byte, into any) error {
	content, err := native.Decode(value)
	if err == nil && encoding.Detect(value) == encoding.FormatCBOR {
		err = errors.New("cbor is no format of RBAC objects")
	}
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}
