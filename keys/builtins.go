package keys

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope tells whether objects of a resource have a namespace.
type scope int

const (
	anyScope scope = iota // unknown: custom resources, built-ins newer than the table
	clusterScoped
	namespaced
)

func (s scope) String() string {
	return [...]string{"of either scope", "cluster-scoped", "namespaced"}[s]
}

// builtin is a resource and the dir of its objects in etcd.
type builtin struct {
	schema.GroupResource
	scope scope
	dir   string // below the prefix, without slashes around it
}

// group holds the built-ins of one API group. Resources missing from special are stored under their
// name.
type group struct {
	name       string
	cluster    []string
	namespaced []string
}

// groups lists the stored resources of kube-apiserver 1.0 to 1.37, in their preferred groups
// (k8s.io/api v0.37.2 and the storage table of kube-apiserver's integration tests).
func groups() []group {
	return []group{
		{"", []string{"namespaces", "nodes", "persistentvolumes"},
			[]string{"configmaps", "endpoints", "events", "limitranges", "persistentvolumeclaims",
				"pods", "podtemplates",
				"replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services"}},
		// records of API servers, not API objects: endpoint reconcilers, allocators of addresses
		// and ports
		{"", []string{"masterleases", "peerserverleases", "ranges"}, nil},
		{"admissionregistration.k8s.io", []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
			"mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
			"initializerconfigurations" /* until 1.13 */}, nil},
		{"apiextensions.k8s.io", []string{"customresourcedefinitions"}, nil},
		{"apiregistration.k8s.io", []string{"apiservices"}, nil},
		{"apps", nil, []string{"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"}},
		{"auditregistration.k8s.io", []string{"auditsinks"} /* until 1.18 */, nil},
		{"autoscaling", nil, []string{"horizontalpodautoscalers"}},
		{"batch", nil, []string{"cronjobs", "jobs"}},
		{"certificates.k8s.io", []string{"certificatesigningrequests", "clustertrustbundles"},
			[]string{"podcertificaterequests"}},
		{"coordination.k8s.io", nil, []string{"leasecandidates", "leases"}},
		{"discovery.k8s.io", nil, []string{"endpointslices"}},
		{"flowcontrol.apiserver.k8s.io", []string{"flowschemas", "prioritylevelconfigurations"}, nil},
		{"internal.apiserver.k8s.io", []string{"storageversions"}, nil},
		{"lifecycle.k8s.io", nil, []string{"evictionrequests", "evictions"}},
		{"networking.k8s.io", []string{"ingressclasses", "ipaddresses", "servicecidrs",
			"clustercidrs" /* until 1.28 */}, []string{"ingresses", "networkpolicies"}},
		{"node.k8s.io", []string{"runtimeclasses"}, nil},
		{"policy", []string{"podsecuritypolicies"} /* until 1.24 */, []string{"poddisruptionbudgets"}},
		{"rbac.authorization.k8s.io", []string{"clusterrolebindings", "clusterroles"},
			[]string{"rolebindings", "roles"}},
		{"resource.k8s.io", []string{"deviceclasses", "devicetaintrules", "resourcepoolstatusrequests",
			"resourceslices", "resourceclasses"},
			[]string{"resourceclaims", "resourceclaimtemplates", "podschedulingcontexts", "resourceclaimparameters",
				"resourceclassparameters"}},
		{"scheduling.k8s.io", []string{"priorityclasses"}, []string{"compositepodgroups", "podgroups", "workloads"}},
		{"settings.k8s.io", nil, []string{"podpresets"} /* until 1.19 */},
		{"storage.k8s.io", []string{"csidrivers", "csinodes", "storageclasses", "volumeattachments",
			"volumeattributesclasses"}, []string{"csistoragecapacities"}},
		{"storagemigration.k8s.io", []string{"storageversionmigrations"}, nil},
	}
}

// special lists the dirs of built-ins stored under another path than their name (kube-apiserver's
// default_storage_factory_builder.go; podsecuritypolicy as until 1.24).
func special() map[schema.GroupResource]string {
	return map[schema.GroupResource]string{
		{Resource: "endpoints"}:                             "services/endpoints",
		{Resource: "nodes"}:                                 "minions",
		{Resource: "replicationcontrollers"}:                "controllers",
		{Resource: "services"}:                              "services/specs",
		{Group: "networking.k8s.io", Resource: "ingresses"}: "ingress",
		{Group: "policy", Resource: "podsecuritypolicies"}:  "podsecuritypolicy",
		{Group: "apiextensions.k8s.io",
			Resource: "customresourcedefinitions"}: "apiextensions.k8s.io/customresourcedefinitions",
		{Group: "apiregistration.k8s.io", Resource: "apiservices"}: "apiregistration.k8s.io/apiservices",
	}
}

// aliases lists the dirs of resources served by a second group.
func aliases() map[schema.GroupResource]string {
	return map[schema.GroupResource]string{
		{Group: "events.k8s.io", Resource: "events"}:           "events",
		{Group: "extensions", Resource: "ingresses"}:           "ingress",
		{Group: "extensions", Resource: "podsecuritypolicies"}: "podsecuritypolicy",
	}
}

// flatten lists the resources of groups. special overrides the dir of a resource; the default is
// its name.
func flatten(groups []group, special map[schema.GroupResource]string) []builtin {
	var out []builtin
	add := func(group string, scope scope, resources []string) {
		for _, r := range resources {
			gr := schema.GroupResource{Group: group, Resource: r}
			out = append(out, builtin{gr, scope, cmp.Or(special[gr], r)})
		}
	}
	for _, g := range groups {
		add(g.name, clusterScoped, g.cluster)
		add(g.name, namespaced, g.namespaced)
	}
	return out
}

// builtins lists the resources of kube-apiserver.
func builtins() []builtin { return flatten(groups(), special()) }

// The tables of the layouts.
var (
	kubernetesTable = newTable(builtins(), aliases())
	openshiftTable  = newTable(openshiftBuiltins(), nil)
	shardTable      = newTable(shardBuiltins(), nil)
	cacheTable      = newTable(cacheBuiltins(), nil)
)
