package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
)

// access decides by the RBAC rules whether a user may make a request.
func (b rbac) access(
	ctx context.Context, s *authorizationv1.SubjectAccessReviewSpec,
) (status authorizationv1.SubjectAccessReviewStatus, err error) {
	u := &user.DefaultInfo{Name: s.User, Groups: s.Groups}
	if slices.Contains(u.Groups, user.SystemPrivilegedGroup) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
	}
	a := attributes(s)
	q := &inquiry{rbac: b, ctx: ctx, user: u, namespace: a.Namespace,
		visit: func(rule *rbacv1.PolicyRule, reason string) bool {
			if covers(rule, a) {
				status.Allowed, status.Reason = true, reason
			}
			return !status.Allowed
		}}
	err = q.run()
	status.EvaluationError = strings.Join(q.problems, "; ")
	if !status.Allowed {
		status.Reason = "no RBAC rule in the snapshot allows it; " + missingAuthorizers(u)
		q.warnOfGroups()
	}
	return status, err
}

// warnOfGroups warns about groups missing in the request if no binding names the user.
func (q *inquiry) warnOfGroups() {
	known := slices.ContainsFunc(q.user.GetGroups(), func(group string) bool { return group != user.AllAuthenticated })
	if q.named || known {
		return
	}
	where := "no ClusterRoleBinding"
	if q.namespace != "" {
		where += fmt.Sprintf(" and no RoleBinding in namespace %q", q.namespace)
	}
	const groups = "groups come from certificates or OIDC, not from the snapshot: give them with --as-group"
	warning.AddWarning(q.ctx, "", fmt.Sprintf("%s names user %q; %s", where, q.user.GetName(), groups))
}

// missingAuthorizers names the authorizers that a snapshot cannot contain.
func missingAuthorizers(u user.Info) string {
	if isNode(u) {
		return "the Node authorizer, which decides about nodes, and authorization webhooks were not asked"
	}
	return "authorization webhooks, if the cluster had any, were not asked"
}

func attributes(s *authorizationv1.SubjectAccessReviewSpec) authorizer.AttributesRecord {
	if p := s.NonResourceAttributes; p != nil {
		return authorizer.AttributesRecord{Verb: p.Verb, Path: p.Path}
	}
	r := s.ResourceAttributes
	return authorizer.AttributesRecord{
		Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group, Resource: r.Resource, Subresource: r.Subresource,
		Name: r.Name, ResourceRequest: true,
	}
}

// mostRules bounds the rules of one answer.
const mostRules = 10000

// allRules lists the rules of a user in a namespace.
func (b rbac) allRules(
	ctx context.Context, u user.Info, namespace string,
) (authorizationv1.SubjectRulesReviewStatus, error) {
	status := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{}}
	cut := false
	q := &inquiry{rbac: b, ctx: ctx, user: u, namespace: namespace, visit: func(r *rbacv1.PolicyRule, _ string) bool {
		if cut = len(status.ResourceRules)+len(status.NonResourceRules) >= mostRules; cut {
			return false
		}
		if len(r.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules,
				authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources,
					ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules,
				authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
		return true
	}}
	err := q.run()
	if cut {
		q.problem("the user has more rules than one answer holds")
	}
	if q.warnOfGroups(); isNode(u) {
		q.problem(missingAuthorizers(u))
	} else {
		warning.AddWarning(ctx, "", missingAuthorizers(u))
	}
	status.EvaluationError, status.Incomplete = strings.Join(q.problems, "; "), len(q.problems) > 0
	return status, err
}
