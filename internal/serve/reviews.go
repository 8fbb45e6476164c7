package serve

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

// review answers questions about the client, such as "kubectl auth can-i": a POST that changes
// nothing.
type review struct {
	kind   string
	empty  func() runtime.Object
	answer func(ctx context.Context, question runtime.Object) error
}

// New returns an empty question.
func (r *review) New() runtime.Object { return r.empty() }

// Destroy has nothing to end.
func (r *review) Destroy() {}

// NamespaceScoped is false: no question is asked in a namespace.
func (r *review) NamespaceScoped() bool { return false }

// GetSingularName is for kubectl.
func (r *review) GetSingularName() string { return strings.ToLower(r.kind) }

// Create answers a question.
func (r *review) Create(ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if r.kind != "SelfSubjectReview" {
		warning.AddWarning(ctx, "", "the RBAC rules in the snapshot were not asked: this is what the reader of the snapshot may do here")
	}
	return obj, r.answer(ctx, obj)
}

// reviews lists the questions that are answered, by their group and resource.
func reviews() map[schema.GroupResource]*review {
	const authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"
	return map[schema.GroupResource]*review{
		{Group: authorization, Resource: "selfsubjectaccessreviews"}: {
			kind: "SelfSubjectAccessReview", empty: func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} },
			answer: func(_ context.Context, q runtime.Object) error {
				r := q.(*authorizationv1.SelfSubjectAccessReview)
				r.Status = access(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
				return checkAccess(r)
			},
		},
		{Group: authorization, Resource: "selfsubjectrulesreviews"}: {
			kind: "SelfSubjectRulesReview", empty: func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} },
			answer: func(_ context.Context, q runtime.Object) error {
				r := q.(*authorizationv1.SelfSubjectRulesReview)
				r.Status = authorizationv1.SubjectRulesReviewStatus{
					ResourceRules:    []authorizationv1.ResourceRule{{Verbs: reads(), APIGroups: []string{"*"}, Resources: []string{"*"}}},
					NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}},
				}
				if r.Spec.Namespace == "" {
					return apierrors.NewBadRequest("no namespace on request")
				}
				return nil
			},
		},
		{Group: authentication, Resource: "selfsubjectreviews"}: {
			kind: "SelfSubjectReview", empty: func() runtime.Object { return &authenticationv1.SelfSubjectReview{} },
			answer: func(ctx context.Context, q runtime.Object) error {
				if u, has := request.UserFrom(ctx); has {
					q.(*authenticationv1.SelfSubjectReview).Status.UserInfo = authenticationv1.UserInfo{Username: u.GetName(), Groups: u.GetGroups()}
				}
				return nil
			},
		},
	}
}

// checkAccess refuses a question about nothing, or about two things, as kube-apiserver does.
func checkAccess(r *authorizationv1.SelfSubjectAccessReview) error {
	if (r.Spec.ResourceAttributes == nil) != (r.Spec.NonResourceAttributes == nil) {
		return nil
	}
	const rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview").GroupKind(), "",
		field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes"), r.Spec.ResourceAttributes, rule)})
}

// access answers whether a request would be answered.
func access(r *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	if allows(r, path) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: "a snapshot is served read-only"}
}

func reads() []string { return []string{"get", "list", "watch"} }

// allows reports whether a request would be answered.
func allows(r *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) bool {
	if path != nil {
		return path.Verb == "get"
	}
	if r == nil {
		return false
	}
	_, process := processes()[r.Subresource]
	return !process && slices.Contains(reads(), r.Verb)
}

// isReview reports whether a request asks one of the questions.
func isReview(info *request.RequestInfo) bool {
	return info.Subresource == "" && info.APIVersion == "v1" && reviews()[schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}] != nil
}
