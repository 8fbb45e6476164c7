package serve_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAccess checks that the token is required, that other hosts are refused, and that web pages
// cannot read answers.
func TestAccess(t *testing.T) {
	s := start(t, everyKey)
	for _, path := range []string{"/api/v1/pods", "/version", "/openapi/v3", "/apis/example.com", "/healthz",
		"/api/v1/nodes/a/proxy/"} {
		for _, authorization := range []string{"none", "Bearer ", "Bearer " + token + "x", "Basic " + token} {
			resp, text := s.do(t, "GET", path, "", "Authorization", authorization)
			require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "%s: %s", path, text)
		}
	}
	for host, want := range map[string]int{
		"127.0.0.1:443": 200, "localhost": 200, "[::1]:7": 200, "10.0.0.1": 200, "evil.example.com": 403,
		"evil.example.com:443": 403, "localhost.evil.example.com": 403,
	} {
		resp, _ := s.do(t, "GET", "/api/v1/pods?limit=1", "", "Host", host)
		require.Equal(t, want, resp.StatusCode, host)
	}
	for _, method := range []string{"GET", "OPTIONS"} {
		resp, _ := s.do(t, method, "/api/v1/pods?limit=1", "", "Origin", "https://evil.example.com",
			"Access-Control-Request-Method", "GET")
		for name := range resp.Header {
			require.NotContains(t, name, "Access-Control")
		}
	}
	resp, text := s.do(t, "GET", "/version", "")
	require.Equal(t, 200, resp.StatusCode)
	require.Regexp(t, `"gitVersion": "v1\.\d+\.\d+\+etcdshift"`, text)
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		resp, text := s.do(t, "GET", path, "")
		require.Equal(t, 200, resp.StatusCode, text)
	}
}

// TestReadOnly checks that changes, and requests for data missing in a file, are refused with an
// explanation.
func TestReadOnly(t *testing.T) {
	s := start(t, everyKey)
	pods := s.typed(t).CoreV1().Pods("a")
	const sentence = "is a snapshot of etcd, served read-only: nothing can be changed"
	_, createErr := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{DryRun: []string{"All"}})
	_, updateErr := pods.Update(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "run"}},
		metav1.UpdateOptions{})
	_, patchErr := pods.Patch(t.Context(), "run", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	for _, err := range []error{
		createErr, updateErr, patchErr,
		pods.Delete(t.Context(), "run", metav1.DeleteOptions{}),
		pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		require.True(t, apierrors.IsMethodNotSupported(err), err)
		require.ErrorContains(t, err, sentence)
	}
	_, err := pods.GetLogs("run", &corev1.PodLogOptions{}).Stream(t.Context())
	require.ErrorContains(t, err, "it has no logs")
	for _, request := range [][2]string{
		{"POST", "/apis/example.com/v1/things"}, {"DELETE", "/apis/example.com/v1"}, {"PUT", "/"},
		{"DELETE", "/version"}, {"PATCH", "/api/v1/nodes/a/status"},
		{"OPTIONS", "/api/v1/pods"}, {"POST", "/api/v1/namespaces/a/pods/run/exec"},
		{"GET", "/api/v1/namespaces/a/pods/run/exec"},
		{"GET", "/api/v1/namespaces/a/services/s/proxy/"},
		{"POST", "/apis/authorization.k8s.io/v1beta1/selfsubjectaccessreviews"},
	} {
		resp, text := s.do(t, request[0], request[1], "{}")
		require.Equal(t, 405, resp.StatusCode, "%s: %s", request, text)
		require.Contains(t, text, "is a snapshot of etcd")
	}
}

// TestReviews checks the reviews about the reader.
func TestReviews(t *testing.T) {
	s := start(t, everyKey)
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		s.ContentType, s.AcceptContentTypes = contentType, contentType
		auth := s.typed(t).AuthorizationV1()
		for verb, want := range map[string]bool{"get": true, "list": true, "watch": true, "create": false,
			"delete": false, "impersonate": false} {
			r, err := auth.SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods"}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Equal(t, want, r.Status.Allowed, verb)
			require.Equal(t, want, r.Status.Reason == "")
		}
		r, err := auth.SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Resource: "pods", Subresource: "log"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.False(t, r.Status.Allowed)
		rules, err := auth.SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"get", "list", "watch"}, rules.Status.ResourceRules[0].Verbs)
		_, err = auth.SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{},
			metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), err)
		_, err = auth.SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{},
			metav1.CreateOptions{})
		require.True(t, apierrors.IsBadRequest(err), err)
	}
}

// TestImpersonation checks that reviews of other users follow the RBAC rules of the file, and that
// reads as another user are refused.
func TestImpersonation(t *testing.T) {
	s := start(t, everyKey)
	s.Impersonate.UserName = "system:serviceaccount:kube-system:expand-controller"
	_, err := s.typed(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "nobody can be impersonated")
	_, err = s.typed(t).Discovery().ServerGroups()
	require.NoError(t, err)
	who, err := s.typed(t).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		who.Status.UserInfo.Groups)
	for verb, want := range map[string]bool{"update": true, "impersonate": false} {
		r, err := s.typed(t).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: verb, Resource: "persistentvolumes"}},
			}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, want, r.Status.Allowed, verb)
	}
	rules, err := s.typed(t).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, rules.Status.Incomplete)
	require.Contains(t, rules.Status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"get"},
		NonResourceURLs: []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}})
}
