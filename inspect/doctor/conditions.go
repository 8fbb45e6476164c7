package doctor

import (
	"context"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// conditions are the match conditions of a webhook.
type conditions struct {
	matchconditions.Matcher // nil for none
}

// newConditions compiles match conditions as API servers do.
func newConditions(hook *admissionv1.MutatingWebhook) *conditions {
	if len(hook.MatchConditions) == 0 {
		return &conditions{}
	}
	var accessors []cel.ExpressionAccessor
	for i := range hook.MatchConditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&hook.MatchConditions[i]))
	}
	compiler := cel.NewConditionCompiler(bounded.Environment())
	compiled := compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	return &conditions{matchconditions.NewMatcher(compiled, nil, "webhook", "admit", hook.Name)}
}

// match tells whether a request meets the conditions. One that an error stops does too: API servers
// refuse the request then.
func (c *conditions) match(ctx context.Context, n *need, content map[string]any) bool {
	if c.Matcher == nil {
		return true
	}
	resource, sub, _ := strings.Cut(n.resource, "/")
	kind := gvr.GroupVersionKind{Group: n.group, Version: "v1", Kind: n.kind}
	object := &unstructured.Unstructured{Object: content}
	attributes := &admission.VersionedAttributes{VersionedKind: kind, VersionedObject: admission.NewLazyObject(object)}
	if n.operation == update {
		attributes.VersionedOldObject = admission.NewLazyObject(object)
	}
	attributes.Attributes = admission.NewAttributesRecord(object, nil, kind, n.namespace, object.GetName(),
		gvr.GroupVersionResource{Group: n.group, Version: "v1", Resource: resource}, sub, admission.Operation(n.operation), nil, false, n.user())
	result := c.Match(ctx, attributes, nil, noOpinion{})
	return result.Matches || result.Error != nil
}

// user is who makes the request.
func (n *need) user() user.Info {
	name, groups := n.by, []string{user.AllAuthenticated}
	switch {
	case n.by == byKubelet:
		name, groups = name+"node", append(groups, user.NodesGroup)
	case n.by == byAPIServer:
		groups = append(groups, user.SystemPrivilegedGroup)
	case strings.HasPrefix(n.by, byAccount):
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	}
	return &user.DefaultInfo{Name: name, Groups: groups}
}

// made is an object that the file does not have.
func (n *need) made(name string, set labels.Set) map[string]any {
	u := unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvr.GroupVersionKind{Group: n.group, Version: "v1", Kind: n.kind})
	u.SetName(name)
	u.SetNamespace(n.namespace)
	u.SetLabels(set)
	return u.Object
}

// noOpinion stands for the authorizer of the API server, which a file does not have.
type noOpinion struct{}

// Authorize has no opinion.
func (noOpinion) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("there is no authorizer")
}
