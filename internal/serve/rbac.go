package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// rbac holds the RBAC resources of a snapshot by name. Objects are read again for each review: a
// file may have more of them than fit in memory.
type rbac map[string]*resource

func newRBAC(found []*resource) rbac {
	out := rbac{}
	for _, r := range found {
		if r.Resource.Group == rbacv1.GroupName {
			out[r.Resource.Resource] = r
		}
	}
	return out
}

// mostProblems bounds the missing and unreadable objects named in one answer.
const mostProblems = 20

// inquiry visits the rules bound to a user, ClusterRoleBindings first.
type inquiry struct {
	rbac
	ctx       context.Context
	user      user.Info
	namespace string
	visit     func(rule *rbacv1.PolicyRule, reason string) (more bool)
	problems  []string // missing roles and unreadable objects
	named     bool     // a binding names the user, not only a group of the user
}

func (q *inquiry) run() error {
	more, err := q.bindings("clusterrolebindings", "")
	if err == nil && more && q.namespace != "" {
		_, err = q.bindings("rolebindings", q.namespace)
	}
	return err
}

func (q *inquiry) problem(text string) {
	switch {
	case slices.Contains(q.problems, text) || len(q.problems) > mostProblems:
	case len(q.problems) == mostProblems:
		q.problems = append(q.problems, "and more")
	default:
		q.problems = append(q.problems, text)
	}
}

// bindings visits the rules of the bindings of a namespace, or of ClusterRoleBindings for "".
func (q *inquiry) bindings(name, namespace string) (more bool, err error) {
	r := q.rbac[name]
	if r == nil {
		return true, nil
	}
	err = r.source.reader.Snapshot().Guard(func() error {
		f, err := r.folder()
		if err != nil {
			return err
		}
		i, end, err := f.between(r.key(f, namespace, ""))
		for more = true; err == nil && more && i < end; i++ {
			var rec *snapshot.Record
			if rec, err = f.records.At(i); err == nil {
				more, err = q.binding(r, rec, namespace)
			}
			err = cmp.Or(q.ctx.Err(), err)
		}
		return err
	})
	return more, err
}

// binding visits the rules of a binding if a subject matches the user.
func (q *inquiry) binding(r *resource, rec *snapshot.Record, namespace string) (more bool, err error) {
	var b rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
	if err := r.into(q.ctx, rec, &b); err != nil {
		return true, q.unreadable(err)
	}
	i := slices.IndexFunc(b.Subjects, func(s rbacv1.Subject) bool { return isSubject(q.user, s, namespace) })
	if i < 0 {
		return true, nil
	}
	q.named = q.named || slices.ContainsFunc(b.Subjects,
		func(s rbacv1.Subject) bool { return s.Kind != rbacv1.GroupKind && isSubject(q.user, s, namespace) })
	rules, err := q.rules(b.RoleRef, namespace)
	if err != nil {
		return true, err
	}
	name := b.Name
	if namespace != "" {
		name += "/" + namespace
	}
	reason := fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s", r.Kind, name, b.RoleRef.Kind, b.RoleRef.Name,
		describe(b.Subjects[i], namespace))
	for j := range rules {
		if !q.visit(&rules[j], reason) {
			return false, nil
		}
	}
	return true, nil
}

// rules returns the rules of a role. A ClusterRole has the rules of its last aggregation.
func (q *inquiry) rules(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	name, where := "clusterroles", ""
	if ref.Kind == "Role" {
		name, where = "roles", namespace
	}
	r := q.rbac[name]
	known := ref.Kind == "ClusterRole" || ref.Kind == "Role" && namespace != ""
	if r == nil || !known || ref.Name == "" || strings.Contains(ref.Name, "/") {
		q.missing(ref)
		return nil, nil
	}
	f, err := r.folder()
	if err != nil {
		return nil, err
	}
	rec, err := f.find(r.key(f, where, ref.Name))
	if err != nil || rec == nil {
		q.missing(ref)
		return nil, err
	}
	var role rbacv1.Role // a ClusterRole has the same rules
	if err := r.into(q.ctx, rec, &role); err != nil {
		return nil, q.unreadable(err)
	}
	return role.Rules, nil
}

func (q *inquiry) missing(ref rbacv1.RoleRef) {
	q.problem(fmt.Sprintf("%s %q is not in the snapshot", ref.Kind, ref.Name))
}

// unreadable records an unreadable object, and returns other errors.
func (q *inquiry) unreadable(err error) error {
	u := (*unreadable)(nil)
	if !errors.As(err, &u) {
		return err
	}
	q.problem(fmt.Sprintf("%q cannot be read", u.key))
	return nil
}

// into decodes the object of a record.
func (r *resource) into(ctx context.Context, rec *snapshot.Record, out any) error {
	e, err := r.source.reader.Entry(ctx, rec)
	if err != nil {
		return err
	}
	o := inspect.NewObject(r.stored, e)
	if err = o.Err; err == nil {
		err = r.convert(o.Content, "v1")
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, out)
	}
	if err != nil {
		return &unreadable{string(e.Key), err}
	}
	return nil
}

// isSubject reports whether a subject of a binding in a namespace matches a user.
func isSubject(u user.Info, s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return u.GetName() == s.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		namespace = cmp.Or(s.Namespace, namespace)
		return namespace != "" && u.GetName() == serviceaccount.MakeUsername(namespace, s.Name)
	}
	return false
}

func describe(s rbacv1.Subject, namespace string) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+cmp.Or(s.Namespace, namespace))
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name)
}

// covers reports whether a rule allows a request.
func covers(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !hasOrAll(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			return url == a.GetPath() || strings.HasSuffix(url, "*") &&
				strings.HasPrefix(a.GetPath(), strings.TrimRight(url, "*"))
		})
	}
	return hasOrAll(rule.APIGroups, a.GetAPIGroup()) && coversResource(rule.Resources, a.GetResource(),
		a.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

func coversResource(resources []string, resource, subresource string) bool {
	if subresource == "" {
		return hasOrAll(resources, resource)
	}
	return hasOrAll(resources, resource+"/"+subresource) || slices.Contains(resources, "*/"+subresource)
}

// hasOrAll reports whether names contains name or "*".
func hasOrAll(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, "*")
}
