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
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

// review answers questions about users, such as "kubectl auth can-i": a POST without changes.
type review struct {
	kind       string
	namespaced bool
	empty      func() runtime.Object
	answer     func(ctx context.Context, question runtime.Object) error
}

// New returns an empty question.
func (r *review) New() runtime.Object { return r.empty() }

// Destroy does nothing.
func (r *review) Destroy() {}

// NamespaceScoped reports whether the question is asked in a namespace.
func (r *review) NamespaceScoped() bool { return r.namespaced }

// GetSingularName returns the name that kubectl accepts for one object.
func (r *review) GetSingularName() string { return strings.ToLower(r.kind) }

// Create answers a question.
func (r *review) Create(
	ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	return obj, r.answer(ctx, obj)
}

// reviews returns the supported reviews by group and resource.
func reviews(b rbac) map[schema.GroupResource]*review {
	const authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"
	return map[schema.GroupResource]*review{
		{Group: authorization, Resource: "subjectaccessreviews"}: {
			kind: "SubjectAccessReview", empty: func() runtime.Object { return &authorizationv1.SubjectAccessReview{} },
			answer: b.reviewSubject,
		},
		{Group: authorization, Resource: "localsubjectaccessreviews"}: {
			kind: "LocalSubjectAccessReview", namespaced: true,
			empty: func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} }, answer: b.reviewLocal,
		},
		{Group: authorization, Resource: "selfsubjectaccessreviews"}: {
			kind: "SelfSubjectAccessReview", empty: func() runtime.Object {
				return &authorizationv1.SelfSubjectAccessReview{}
			}, answer: b.reviewSelf,
		},
		{Group: authorization, Resource: "selfsubjectrulesreviews"}: {
			kind: "SelfSubjectRulesReview", empty: func() runtime.Object {
				return &authorizationv1.SelfSubjectRulesReview{}
			}, answer: b.reviewRules,
		},
		{Group: authentication, Resource: "selfsubjectreviews"}: {
			kind: "SelfSubjectReview", empty: func() runtime.Object { return &authenticationv1.SelfSubjectReview{} },
			answer: whoAmI,
		},
	}
}

// isReview reports whether a request is a supported review.
func isReview(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.Verb == "create" && info.Subresource == "" && info.APIVersion == "v1" &&
		reviews(nil)[schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}] != nil
}

func whoAmI(ctx context.Context, q runtime.Object) error {
	if u, has := request.UserFrom(ctx); has {
		info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
		for name, values := range u.GetExtra() {
			if info.Extra == nil {
				info.Extra = map[string]authenticationv1.ExtraValue{}
			}
			info.Extra[name] = values
		}
		q.(*authenticationv1.SelfSubjectReview).Status.UserInfo = info
	}
	return nil
}

func (b rbac) reviewSubject(ctx context.Context, q runtime.Object) (err error) {
	r := q.(*authorizationv1.SubjectAccessReview)
	if err := check("SubjectAccessReview", checkSubject(r.Spec)); err != nil {
		return err
	}
	r.Status, err = b.access(ctx, &r.Spec)
	return err
}

func (b rbac) reviewLocal(ctx context.Context, q runtime.Object) (err error) {
	r := q.(*authorizationv1.LocalSubjectAccessReview)
	problems := checkSubject(r.Spec)
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != request.NamespaceValue(ctx) {
		problems = append(problems, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), a.Namespace,
			"must match metadata.namespace"))
	}
	if p := r.Spec.NonResourceAttributes; p != nil {
		problems = append(problems, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), p,
			"disallowed on this kind of request"))
	}
	if err := check("LocalSubjectAccessReview", problems); err != nil {
		return err
	}
	r.Status, err = b.access(ctx, &r.Spec)
	return err
}

func (b rbac) reviewSelf(ctx context.Context, q runtime.Object) (err error) {
	r := q.(*authorizationv1.SelfSubjectAccessReview)
	if err := check("SelfSubjectAccessReview", checkAttributes(r.Spec.ResourceAttributes,
		r.Spec.NonResourceAttributes)); err != nil {
		return err
	}
	u, has := request.UserFrom(ctx)
	if !has || u.GetName() == readerName {
		warnOfReader(ctx)
		r.Status = readerAccess(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
		return nil
	}
	r.Status, err = b.access(ctx, &authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: r.Spec.ResourceAttributes, NonResourceAttributes: r.Spec.NonResourceAttributes,
		User: u.GetName(), Groups: u.GetGroups(),
	})
	return err
}

func (b rbac) reviewRules(ctx context.Context, q runtime.Object) (err error) {
	r := q.(*authorizationv1.SelfSubjectRulesReview)
	if r.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	u, has := request.UserFrom(ctx)
	if has && u.GetName() != readerName {
		r.Status, err = b.allRules(ctx, u, r.Spec.Namespace)
		return err
	}
	warnOfReader(ctx)
	r.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{{Verbs: reads(), APIGroups: []string{"*"},
			Resources: []string{"*"}}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}},
	}
	return nil
}

// check returns the error of kube-apiserver for an invalid question.
func check(kind string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", problems)
}

// checkAttributes returns an error unless a question has exactly one subject, like kube-apiserver.
func checkAttributes(
	r *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes,
) field.ErrorList {
	if (r == nil) != (path == nil) {
		return nil
	}
	const rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	return field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes"), r, rule)}
}

func checkSubject(s authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	problems := checkAttributes(s.ResourceAttributes, s.NonResourceAttributes)
	if s.User == "" && len(s.Groups) == 0 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "user"), s.User,
			"at least one of user or group must be specified"))
	}
	return problems
}

func warnOfReader(ctx context.Context) {
	warning.AddWarning(ctx, "", "this is what the reader of the snapshot may do here; --as asks the RBAC rules in "+
		"the snapshot about a user")
}

// readerAccess answers whether the server allows a request of the reader.
func readerAccess(
	r *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes,
) authorizationv1.SubjectAccessReviewStatus {
	allowed := path != nil && path.Verb == "get"
	if r != nil {
		_, process := processes()[r.Subresource]
		allowed = !process && slices.Contains(reads(), r.Verb)
	}
	if allowed {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	return authorizationv1.SubjectAccessReviewStatus{Reason: "a snapshot is served read-only"}
}

func reads() []string { return []string{"get", "list", "watch"} }

// isNode reports whether the Node authorizer decides about a user.
func isNode(u user.Info) bool {
	return strings.HasPrefix(u.GetName(), "system:node:") || slices.Contains(u.GetGroups(), user.NodesGroup)
}
