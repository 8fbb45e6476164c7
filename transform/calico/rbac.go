package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const groupRBAC = "rbac.authorization.k8s.io"

// account is a service account that a Calico component runs under.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

// calicoAccounts are the accounts that manifests, charts and operator use, and those of the workloads that were found.
func calicoAccounts(found *installation) map[account]bool {
	accounts := map[account]bool{}
	for _, namespace := range []string{"kube-system", namespaceOperated} {
		for _, name := range []string{"calico-node", "calico-kube-controllers", "calico-typha", "calico-cni-plugin", "canal"} {
			accounts[account{namespace, name}] = true
		}
	}
	for _, c := range found.components {
		if c.workload.ServiceAccount != "" {
			accounts[account{c.namespace, c.workload.ServiceAccount}] = true
		}
	}
	return accounts
}

// checkRBAC demands that each Calico account that any binding names may use the new group, as far as it may use the old:
// releases before 3.32 grant the old one only, and a cluster upgraded by images alone has their roles. Nothing of this can be
// told of a snapshot that names none of the accounts.
func checkRBAC(ctx context.Context, v *transform.View, k keys.Kubernetes, found *installation) error {
	grants, err := readGrants(ctx, v, k, calicoAccounts(found))
	if err != nil {
		return err
	}
	told := false
	for _, g := range grants {
		told = told || g.bound()
		g.judge(v, found)
	}
	if !told {
		v.Warn("", codeRBACUnknown, "no role in the snapshot is bound to a service account of Calico")
		v.Report().AddStep("before the restore, check that the roles of Calico's components grant %s what they grant %s", groupV3, groupV1)
	}
	return nil
}

// grant is what one account is allowed.
type grant struct {
	account  account
	bindings []string // keys of those that name it, in order
	rules    []rbacv1.PolicyRule
}

type grants []*grant // in the order of accounts

func newGrants(accounts map[account]bool) grants {
	var out grants
	for a := range accounts {
		out = append(out, &grant{account: a})
	}
	slices.SortFunc(out, func(a, b *grant) int { return cmp.Compare(a.account.String(), b.account.String()) })
	return out
}

func (g *grant) bound() bool { return len(g.bindings) > 0 }

// judge reports an account that is bound to roles which do not let it work on v3 records.
func (g *grant) judge(v *transform.View, found *installation) {
	if !g.bound() {
		return
	}
	hint := "apply the RBAC of your Calico release (3.32 or later)"
	if found.operated() {
		hint = "let the operator of Calico 3.32 or later reconcile"
	}
	if !g.allowsAny(groupV3) {
		v.Refuse(g.bindings[0], codeRBACMissing, fmt.Sprintf("the roles bound to service account %s grant nothing in %s; %s, then take a new snapshot", g.account, groupV3, hint))
		return
	}
	var lacking []string
	for _, kd := range kinds() {
		if g.allows(groupV1, kd.V1Plural) && !g.allows(groupV3, kd.Plural) {
			lacking = append(lacking, kd.Plural)
		}
	}
	if len(lacking) > 0 {
		v.Warn(g.bindings[0], codeRBACMissing, fmt.Sprintf("the roles bound to service account %s grant it %s in %s but not in %s", g.account, several(lacking), groupV1, groupV3))
	}
}

func (g *grant) allowsAny(group string) bool {
	return slices.ContainsFunc(g.rules, func(rule rbacv1.PolicyRule) bool { return hasOrAll(rule.APIGroups, group) })
}

func (g *grant) allows(group, resource string) bool {
	return slices.ContainsFunc(g.rules, func(rule rbacv1.PolicyRule) bool {
		return hasOrAll(rule.APIGroups, group) && hasOrAll(rule.Resources, resource)
	})
}

func hasOrAll(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// readGrants finds what each account is granted. Most kinds are cluster-scoped, so a RoleBinding shows that an account is
// there, and grants nothing that counts.
func readGrants(ctx context.Context, v *transform.View, k keys.Kubernetes, accounts map[account]bool) (grants, error) {
	out := newGrants(accounts)
	for _, plural := range []string{"clusterrolebindings", "rolebindings"} {
		for entry, err := range v.Live(ctx, k.Dir(schema.GroupResource{Group: groupRBAC, Resource: plural})) {
			if err != nil {
				return nil, err
			}
			var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
			if err := decodeRBAC(entry.Value, &b); err != nil {
				v.Warn(string(entry.Key), codeRBACUnknown, err.Error())
				continue
			}
			if err := out.bind(ctx, v, k, string(entry.Key), &b, plural == "clusterrolebindings"); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// bind adds a binding to the accounts it names.
func (g grants) bind(ctx context.Context, v *transform.View, k keys.Kubernetes, key string, b *rbacv1.RoleBinding, everywhere bool) error {
	var role *rbacv1.ClusterRole
	for _, one := range g {
		named, meant := one.account.among(b.Subjects)
		if named {
			one.bindings = append(one.bindings, key)
		}
		if !meant || !everywhere {
			continue
		}
		if role == nil {
			var err error
			if role, err = clusterRole(ctx, v, k, b.RoleRef.Name); err != nil {
				return err
			}
		}
		one.rules = append(one.rules, role.Rules...)
	}
	return nil
}

// among says whether subjects name the account, or mean it with a group that it is in.
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

// clusterRole reads a ClusterRole; one that is not there, or cannot be read, grants nothing.
func clusterRole(ctx context.Context, v *transform.View, k keys.Kubernetes, name string) (*rbacv1.ClusterRole, error) {
	key := k.Format(keys.Key{Resource: schema.GroupResource{Group: groupRBAC, Resource: "clusterroles"}, Name: name})
	role := &rbacv1.ClusterRole{}
	entry, err := v.Get(ctx, key)
	if err != nil || entry == nil {
		return role, err
	}
	if err := decodeRBAC(entry.Value, role); err != nil {
		v.Warn(string(key), codeRBACUnknown, err.Error())
	}
	return role, nil
}

// decodeRBAC reads an RBAC object as kube-apiserver stores it: protobuf, or JSON in clusters that are set to it.
func decodeRBAC(data []byte, into interface{ Unmarshal([]byte) error }) error {
	value, err := encoding.Parse(data)
	if err != nil {
		return err
	}
	switch value.Format {
	case encoding.FormatProtobuf:
		err = into.Unmarshal(value.Raw)
	case encoding.FormatJSON:
		err = json.Unmarshal(value.Raw, into)
	default:
		err = errors.New(strings.ToLower(value.Format.String()) + " is no format of RBAC objects")
	}
	return err
}
