package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// asking returns users with their groups, as in kube-apiserver.
func asking() map[string][]string {
	const all = "system:authenticated"
	users := map[string][]string{
		"system:kube-scheduler": {all}, "system:kube-controller-manager": {all}, "system:kube-proxy": {all},
		"system:anonymous": {"system:unauthenticated"},
		"alice":            {all}, "root": {"system:masters", all}, "watcher": {"system:monitoring", all}, "nobody": {},
	}
	for _, name := range []string{"kube-system:expand-controller", "kube-system:generic-garbage-collector",
		"kube-system:bootstrap-signer", "kube-system:token-cleaner", "a:default", "a:sa"} {
		namespace, _, _ := strings.Cut(name, ":")
		users["system:serviceaccount:"+name] = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace,
			all}
	}
	return users
}

// questions returns the access reviews for each user.
func questions() (all []authorizationv1.SubjectAccessReviewSpec) {
	for _, line := range []string{
		"get//pods/", "list//pods/a", "create//pods/binding/a", "update//pods/status/a", "get//pods/log/a",
		"get//secrets/kube-system", "get//configmaps/a", "update//persistentvolumes/",
		"delete/apps/deployments/a", "watch/storage.k8s.io/csinodes/", "update/coordination.k8s.io/leases/kube-system",
		"create/authentication.k8s.io/selfsubjectreviews/", "*/*/*/", "deletecollection//events/a",
	} {
		parts := strings.Split(line, "/")
		r := &authorizationv1.ResourceAttributes{Verb: parts[0], Group: parts[1], Resource: parts[2],
			Namespace: parts[len(parts)-1]}
		if len(parts) == 5 {
			r.Subresource = parts[3]
		}
		all = append(all, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: r})
	}
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "extension-apiserver-authentication"} {
		for _, resource := range [][2]string{{"coordination.k8s.io", "leases"}, {"", "configmaps"}} {
			all = append(all, authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "get", Group: resource[0], Resource: resource[1], Namespace: "kube-system", Name: name,
				}})
		}
	}
	for _, path := range []string{"/healthz", "/metrics", "/api/v1", "/logs", "/openid/v1/jwks"} {
		all = append(all, authorizationv1.SubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}})
	}
	return all
}

// TestRBAC checks that a file and the API server that wrote it give the same answers about users.
func TestRBAC(t *testing.T) {
	t.Parallel()
	live, path := everyKind(t)
	served := serve(t, path)
	ask := func(config *rest.Config) func(authorizationv1.SubjectAccessReviewSpec) bool {
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		return func(spec authorizationv1.SubjectAccessReviewSpec) bool {
			r, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
				&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			require.NoError(t, err)
			return r.Status.Allowed
		}
	}
	want, got, count := ask(live.config), ask(served.config(t)), map[bool]int{}
	for name, groups := range asking() {
		for _, spec := range questions() {
			spec.User, spec.Groups = name, groups
			answer := want(spec)
			require.Equal(t, answer, got(spec), "%s: %v %v", name, spec.ResourceAttributes, spec.NonResourceAttributes)
			count[answer]++
		}
	}
	require.Greater(t, min(count[true], count[false]), 50, fmt.Sprint(count))
	t.Log(count)
	requireSameRights(t, live.kubectl(t), served, linked(t, path))
}

// requireSameRights requires that "auth can-i --list" and "auth whoami" print the same.
func requireSameRights(t *testing.T, live, served, own kubectl) {
	t.Helper()
	for name := range asking() {
		if name == "system:anonymous" { // not allowed to send reviews to a live server
			continue
		}
		for _, line := range []string{"auth can-i --list -n kube-system", "auth can-i --list -n a", "auth whoami",
			"auth can-i get pods/x -n a", "auth can-i get pods -n a --subresource log"} {
			command := append(strings.Fields(line), "--as", name)
			for _, k := range []kubectl{served, own} {
				want, _ := live.run(t, command...)
				got, _ := k.run(t, command...)
				want, got = sortVerbs(want), sortVerbs(got)
				for _, difference := range different(want, got) {
					if !strings.HasPrefix(difference, "served: Warning: ") &&
						!strings.HasPrefix(difference, "served: no - no RBAC rule") && difference != "live:   no" {
						t.Errorf("%v: %s", command, difference)
					}
				}
			}
		}
	}
}

// sortVerbs sorts the verbs of each line: a live server reads bindings in no fixed order.
func sortVerbs(text string) string {
	return verbs.ReplaceAllStringFunc(text, func(list string) string {
		words := strings.Fields(strings.Trim(list, "[]"))
		slices.Sort(words)
		return fmt.Sprint(words)
	})
}

var verbs = regexp.MustCompile(`(?m)\[[^\]]*\]$`)
