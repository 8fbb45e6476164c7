package get

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
)

// Reason is the reason why an object need not be applied.
type omission string

// The reasons.
const (
	omitMade     omission = "made again by controllers and servers"
	omitFinished omission = "finished: applied, they would run again"
	omitStale    omission = "stale: Events, Leases and records of leader elections"
	omitToken    omission = "tokens of a ServiceAccount by its old uid: request new ones"
)

// omissions lists all of them.
func omissions() []omission { return []omission{omitMade, omitFinished, omitStale, omitToken} }

// omitter leaves out what need not be applied. It has to see all Services before. The
// zero value is ready.
type omitter struct {
	selecting map[[2]string]bool // namespace and name of Services whose Endpoints a controller creates
}

// see remembers a Service.
func (c *omitter) see(t *inspect.Type, content map[string]any) {
	selector, _, _ := unstructured.NestedMap(content, "spec", "selector")
	if !t.Builtin || t.Resource.Resource != "services" || len(selector) == 0 || madeAgain(content) {
		return
	}
	if c.selecting == nil {
		c.selecting = map[[2]string]bool{}
	}
	u := unstructured.Unstructured{Object: content}
	c.selecting[[2]string{u.GetNamespace(), u.GetName()}] = true
}

// leftOut returns why an object is left out; "" if it is not. Concurrent calls are allowed.
func (c *omitter) leftOut(t *inspect.Type, content map[string]any) omission {
	u := unstructured.Unstructured{Object: content}
	switch {
	case madeAgain(content):
		return omitMade
	case !t.Builtin:
		return ""
	}
	at := [2]string{u.GetNamespace(), u.GetName()}
	switch t.Resource.Resource {
	case "events", "leases":
		return omitStale
	case "csistoragecapacities":
		return omitMade
	case "endpoints":
		if u.GetAnnotations()["control-plane.alpha.kubernetes.io/leader"] != "" {
			return omitStale
		}
		if c.selecting[at] {
			return omitMade
		}
	case "jobs", "pods":
		if finished(content) {
			return omitFinished
		}
	case "secrets":
		if kind, _, _ := unstructured.NestedString(content, "type"); kind == "kubernetes.io/service-account-token" {
			return omitToken
		}
	case "roles", "rolebindings":
		if objects.Bootstrapped(content) {
			return omitMade
		}
	}
	if ownName(t, at) {
		return omitMade
	}
	return ""
}

// finished reports whether a Job or a Pod has ended.
func finished(content map[string]any) bool {
	phase, _, _ := unstructured.NestedString(content, "status", "phase")
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if kind := condition["type"]; condition["status"] == string(metav1.ConditionTrue) &&
			(kind == "Complete" || kind == "Failed") {
			return true
		}
	}
	return phase == "Succeeded" || phase == "Failed"
}

// ownName reports whether the cluster creates the object of that name in every namespace, or in
// one.
func ownName(t *inspect.Type, at [2]string) bool {
	switch t.Resource.Resource + " " + at[1] {
	case "configmaps kube-root-ca.crt", "configmaps openshift-service-ca.crt":
		return true
	case "services kubernetes", "endpoints kubernetes", "endpointslices kubernetes":
		return at[0] == metav1.NamespaceDefault
	case "configmaps extension-apiserver-authentication",
		"configmaps kube-apiserver-legacy-service-account-token-tracking":
		return at[0] == metav1.NamespaceSystem
	}
	return false
}
