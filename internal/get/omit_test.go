package get

import (
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
)

func TestLeftOut(t *testing.T) {
	var c omitter
	for _, tc := range []struct {
		resource, object string
		want             omission
	}{
		{"services", `{metadata: {name: web, namespace: a}, spec: {selector: {app: web}}}`, ""},
		{"services", `{metadata: {name: manual, namespace: a}, spec: {}}`, ""},
		{"endpoints", `{metadata: {name: web, namespace: a}}`, omitMade},
		{"endpoints", `{metadata: {name: web, namespace: b}}`, ""},
		{"endpoints", `{metadata: {name: manual, namespace: a}}`, ""},
		{"endpoints",
			`{metadata: {name: x, namespace: a, annotations: {control-plane.alpha.kubernetes.io/leader: "{}"}}}`,
			omitStale},
		{"endpointslices",
			`{metadata: {name: web-x, namespace: a, ownerReferences: [{kind: Service, controller: true}]}}`,
			omitMade},
		{"pods", `{metadata: {name: a}, status: {phase: Running}}`, ""},
		{"pods", `{metadata: {name: a}, status: {phase: Succeeded}}`, omitFinished},
		{"jobs",
			`{metadata: {name: a}, status: {conditions: [{type: Suspended, status: "True"}, {type: Failed, status: ` +
				`"False"}]}}`, ""},
		{"jobs", `{metadata: {name: a}, status: {conditions: [{type: Failed, status: "True"}]}}`, omitFinished},
		{"secrets", `{metadata: {name: a}, type: Opaque}`, ""},
		{"secrets", `{metadata: {name: a}, type: kubernetes.io/service-account-token}`, omitToken},
		{"leases", `{}`, omitStale},
		{"events", `{}`, omitStale},
		{"serviceaccounts", `{metadata: {name: default, namespace: a}}`, ""}, // Pods are refused until it exists
		{"configmaps", `{metadata: {name: kube-root-ca.crt, namespace: a}}`, omitMade},
		{"configmaps", `{metadata: {name: extension-apiserver-authentication, namespace: a}}`, ""},
		{"services", `{metadata: {name: kubernetes, namespace: default}}`, omitMade},
		{"services", `{metadata: {name: kubernetes, namespace: a}}`, ""},
		{"roles",
			`{metadata: {name: a, labels: {kubernetes.io/bootstrapping: rbac-defaults}, annotations: ` +
				`{rbac.authorization.kubernetes.io/autoupdate: "true"}}}`, omitMade},
		// a user has taken over the object
		{"roles", `{metadata: {name: a, labels: {kubernetes.io/bootstrapping: rbac-defaults}}}`, ""},
	} {
		kind := &inspect.Type{Builtin: true, Resource: gvr.GroupResource{Resource: tc.resource}}
		c.see(kind, parse(t, tc.object))
		require.Equal(t, tc.want, c.leftOut(kind, parse(t, tc.object)), "%s %s", tc.resource, tc.object)
	}
	custom := &inspect.Type{Resource: gvr.GroupResource{Group: "example.com", Resource: "events"}}
	require.Equal(t, omission(""), c.leftOut(custom, parse(t, `{}`)))
}
