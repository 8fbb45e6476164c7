package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// ruledFile returns a snapshot with a rule of each form and with defective bindings.
func ruledFile(t *testing.T) string {
	t.Helper()
	var script strings.Builder
	const api = "rbac.authorization.k8s.io"
	put := func(kind, plural, namespace, name string, object map[string]any) {
		object["apiVersion"], object["kind"] = api+"/v1", kind
		meta, key := map[string]any{"name": name}, "/registry/"+plural+"/"
		if namespace != "" {
			meta["namespace"], key = namespace, key+namespace+"/"
		}
		object["metadata"] = meta
		text, err := json.Marshal(object)
		require.NoError(t, err)
		fmt.Fprintf(&script, "put %q %q\n", key+name, text)
	}
	bind := func(kind, plural, namespace, name, roleKind, role string, subjects ...rbacv1.Subject) {
		put(kind, plural, namespace, name, map[string]any{"subjects": subjects,
			"roleRef": rbacv1.RoleRef{APIGroup: api, Kind: roleKind, Name: role}})
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", APIGroup: api, Name: name} }
	put("ClusterRole", "clusterroles", "", "wide", map[string]any{"rules": []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "*/status"}},
		{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}},
		{Verbs: []string{"update"}, APIGroups: []string{"*"}, Resources: []string{"configmaps"},
			ResourceNames: []string{"one"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/logs/*"}},
	}})
	put("Role", "roles", "a", "narrow", map[string]any{"rules": []rbacv1.PolicyRule{{Verbs: []string{"list"},
		APIGroups: []string{""}, Resources: []string{"secrets"}}}})
	bind("ClusterRoleBinding", "clusterrolebindings", "", "cluster", "ClusterRole", "wide", user("alice"),
		rbacv1.Subject{Kind: "Group", Name: "ops"})
	bind("ClusterRoleBinding", "clusterrolebindings", "", "homeless", "ClusterRole", "wide",
		rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"})
	bind("ClusterRoleBinding", "clusterrolebindings", "", "gone", "ClusterRole", "gone", user("bob"))
	bind("ClusterRoleBinding", "clusterrolebindings", "", "slash", "Role", "a/narrow", user("bob"))
	bind("RoleBinding", "rolebindings", "a", "local", "Role", "narrow", user("bob"),
		rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"})
	bind("RoleBinding", "rolebindings", "b", "wide", "ClusterRole", "wide", user("bob"),
		rbacv1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "a"})
	fmt.Fprintf(&script, "put %q %q\n", "/registry/rolebindings/c/broken", "{")
	return etcdtest.Build(t, script.String())
}

// TestRBAC checks that each form of rule, subject and binding decides like kube-apiserver's
// authorizer.
func TestRBAC(t *testing.T) {
	auth := start(t, ruledFile(t)).typed(t).AuthorizationV1()
	for _, c := range []struct {
		who      string // a user, or group:GROUP
		question string // VERB [GROUP/]RESOURCE[:SUBRESOURCE][=NAME] [NAMESPACE], or VERB /PATH
		want     bool
		problem  string
	}{
		{"alice", "get pods", true, ""},
		{"alice", "get pods a", true, ""},
		{"alice", "list pods", false, ""},
		{"alice", "get pods:log a", true, ""},
		{"alice", "get pods:exec a", false, ""},
		{"alice", "get nodes:status", true, ""},
		{"alice", "get nodes", false, ""},
		{"alice", "delete apps/deployments:scale a", true, ""},
		{"alice", "delete batch/jobs a", false, ""},
		{"alice", "update configmaps=one a", true, ""},
		{"alice", "update example.com/configmaps=one a", true, ""},
		{"alice", "update configmaps=two a", false, ""},
		{"alice", "update configmaps a", false, ""},
		{"alice", "get /metrics", true, ""},
		{"alice", "get /metrics/x", false, ""},
		{"alice", "get /logs/x", true, ""},
		{"alice", "get /logs", false, ""},
		{"alice", "post /metrics", false, ""},
		{"Alice", "get pods", false, ""},
		{"group:ops", "get pods", true, ""},
		{"ops", "get pods", false, ""},
		{"group:alice", "get pods", false, ""},
		{"group:system:masters", "delete nodes", true, ""},
		{"group:system:masters", "delete /x", true, ""},
		{"bob", "list secrets a", true,
			`ClusterRole "gone" is not in the snapshot; Role "a/narrow" is not in the snapshot`},
		{"bob", "list secrets", false,
			`ClusterRole "gone" is not in the snapshot; Role "a/narrow" is not in the snapshot`},
		{"system:serviceaccount:a:robot", "list secrets a", true, ""},
		{"system:serviceaccount:b:robot", "list secrets a", false, ""},
		{"system:serviceaccount:a:robot", "get pods b", true, ""},
		{"system:serviceaccount:a:robot", "get pods", false, ""},
		{"system:serviceaccount:a:robot", "get /metrics", false, ""},
		{"alice", "get secrets c", false, `"/registry/rolebindings/c/broken" cannot be read`},
	} {
		spec := ask(c.question)
		spec.User = c.who
		if group, is := strings.CutPrefix(c.who, "group:"); is {
			spec.User, spec.Groups = "", []string{group}
		}
		r, err := auth.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec},
			metav1.CreateOptions{})
		require.NoError(t, err, c)
		require.Equal(t, c.want, r.Status.Allowed, "%v: %v", c, r.Status)
		require.Equal(t, c.problem, r.Status.EvaluationError, c)
	}
}

// ask parses a question of TestRBAC.
func ask(question string) (s authorizationv1.SubjectAccessReviewSpec) {
	words := append(strings.Fields(question), "")
	if strings.HasPrefix(words[1], "/") {
		s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: words[0], Path: words[1]}
		return s
	}
	r := &authorizationv1.ResourceAttributes{Verb: words[0], Namespace: words[2]}
	r.Resource, r.Name, _ = strings.Cut(words[1], "=")
	r.Resource, r.Subresource, _ = strings.Cut(r.Resource, ":")
	if group, name, has := strings.Cut(r.Resource, "/"); has {
		r.Group, r.Resource = group, name
	}
	s.ResourceAttributes = r
	return s
}

// TestRBACReviews checks that invalid questions are refused, and that answers name the information
// missing in a file.
func TestRBACReviews(t *testing.T) {
	s := start(t, ruledFile(t))
	auth := s.typed(t).AuthorizationV1()
	_, err := auth.SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: ask("get pods")}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), err)
	local := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "a"},
		Spec: ask("list secrets a")}
	local.Spec.User = "bob"
	r, err := auth.LocalSubjectAccessReviews("a").Create(t.Context(), local, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, r.Status.Allowed)
	require.Equal(t, `RBAC: allowed by RoleBinding "local/a" of Role "narrow" to User "bob"`, r.Status.Reason)
	local.Spec.ResourceAttributes.Namespace = "b"
	_, err = auth.LocalSubjectAccessReviews("a").Create(t.Context(), local, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), err)

	node := &authorizationv1.SubjectAccessReview{Spec: ask("get secrets a")}
	node.Spec.User, node.Spec.Groups = "system:node:n1", []string{"system:nodes"}
	answer, err := auth.SubjectAccessReviews().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Contains(t, answer.Status.Reason, "the Node authorizer, which decides about nodes")
	resp, text := s.do(t, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"mallory",`+
			`"resourceAttributes":{"verb":"get","resource":"pods"}}}`, "Content-Type", "application/json")
	require.Equal(t, 201, resp.StatusCode, text)
	require.Contains(t, resp.Header.Get("Warning"), "--as-group")
	resp, text = s.do(t, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", strings.Repeat(" ", 1<<20),
		"Content-Type", "application/json")
	require.Equal(t, 413, resp.StatusCode, text)
}
