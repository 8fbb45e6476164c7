package keys

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OpenShift is the layout of openshift-apiserver and oauth-apiserver, which share an etcd with
// kube-apiserver:
//
//	<prefix>/<resource>[/<namespace>]/<name>
//
// kube-apiserver has a prefix of its own there ("/kubernetes.io") and the layout Kubernetes.
// Resources missing from the table of this package parse with an empty group, in either scope.
type OpenShift struct {
	// Prefix is the storage prefix without trailing slash: "/openshift.io".
	Prefix string
}

// Parse implements Layout.
func (o OpenShift) Parse(key []byte) (Key, error) {
	var buf [6]string // three of the resource, namespace, name and one too many
	segments, err := cut(o.Prefix, key, buf[:0])
	if err != nil {
		return Key{}, err
	}
	at, n, ok := openshiftTable.find(segments, 3)
	if !ok {
		switch at, n = (builtin{GroupResource: schema.GroupResource{Resource: segments[0]}}), 1; segments[0] {
		case "oauth", "authorization", "registry": // folders of resources
			ok = false
		default:
			ok = isLabel(segments[0])
		}
	}
	if !ok {
		return Key{}, unknown(key, "not a resource")
	}
	out := Key{Prefix: o.Prefix, Resource: at.GroupResource}
	if err := out.setName(key, segments[n:], at.scope); err != nil {
		return Key{}, err
	}
	return out, nil
}

// Format implements Layout.
func (o OpenShift) Format(key Key) []byte { return key.appendName(o.dir(key.Resource)) }

// Dirs implements Layout. A resource has one dir.
func (o OpenShift) Dirs(gr schema.GroupResource) [][]byte { return [][]byte{o.dir(gr)} }

func (o OpenShift) dir(gr schema.GroupResource) []byte {
	return []byte(o.Prefix + "/" + cmp.Or(openshiftTable.byResource[gr], gr.Resource) + "/")
}

// openshiftBuiltins lists the resources of openshift-apiserver and oauth-apiserver, including those
// of 3.x (openshift/origin and openshift/openshift-apiserver, specialDefaultResourcePrefixes).
func openshiftBuiltins() []builtin {
	const (
		authorization = "authorization.openshift.io"
		oauth         = "oauth.openshift.io"
		network       = "network.openshift.io"
	)
	return flatten([]group{
		{"apps.openshift.io", nil, []string{"deploymentconfigs"}},
		{authorization, []string{"clusterpolicies", "clusterpolicybindings"}, /* 3.x */
			[]string{"policies", "policybindings", "rolebindingrestrictions"}},
		{"build.openshift.io", nil, []string{"buildconfigs", "builds"}},
		{"image.openshift.io", []string{"images"}, []string{"imagestreams"}},
		{network, []string{"clusternetworks", "hostsubnets", "netnamespaces"}, []string{"egressnetworkpolicies"}},
		{oauth, []string{"oauthaccesstokens", "oauthauthorizetokens", "oauthclientauthorizations", "oauthclients"},
			nil},
		{"route.openshift.io", nil, []string{"routes"}},
		{"security.openshift.io", []string{"rangeallocations", "securitycontextconstraints"}, nil},
		{"template.openshift.io", []string{"brokertemplateinstances"}, []string{"templateinstances", "templates"}},
		{"user.openshift.io", []string{"groups", "identities", "users"}, nil},
	}, map[schema.GroupResource]string{
		{Group: authorization, Resource: "clusterpolicies"}:       "authorization/cluster/policies",
		{Group: authorization, Resource: "clusterpolicybindings"}: "authorization/cluster/policybindings",
		{Group: authorization, Resource: "policies"}:              "authorization/local/policies",
		{Group: authorization, Resource: "policybindings"}:        "authorization/local/policybindings",
		{Group: network, Resource: "clusternetworks"}:             "registry/sdnnetworks",
		{Group: network, Resource: "egressnetworkpolicies"}:       "registry/egressnetworkpolicy",
		{Group: network, Resource: "hostsubnets"}:                 "registry/sdnsubnets",
		{Group: network, Resource: "netnamespaces"}:               "registry/sdnnetnamespaces",
		{Group: oauth, Resource: "oauthaccesstokens"}:             "oauth/accesstokens",
		{Group: oauth, Resource: "oauthauthorizetokens"}:          "oauth/authorizetokens",
		{Group: oauth, Resource: "oauthclientauthorizations"}:     "oauth/clientauthorizations",
		{Group: oauth, Resource: "oauthclients"}:                  "oauth/clients",
		{Group: "user.openshift.io", Resource: "identities"}:      "useridentities",
	})
}
