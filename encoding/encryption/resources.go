package encryption

import "k8s.io/apimachinery/pkg/runtime/schema"

// storedBare are the records that kube-apiserver stores in the clear whatever the configuration says, even "*.*". Their
// storage is made from the plain StorageFactory, which knows no transformers, where that of the API's resources is made
// by the RESTOptionsGetter, which wraps it (k8s.io/apiserver pkg/server/options/etcd.go, transformerStorageFactory).
// The validation of configurations does not let anyone name them (nonRESTAPIResourceErr). The names are those of etcd
// paths, for they are no resources of the API.
//
// CustomResourceDefinitions and APIServices are no exceptions: the servers for them (k8s.io/kubernetes
// pkg/controlplane/apiserver apiextensions.go and aggregator.go) call EtcdOptions.ApplyTo with the transformers of the
// main server, and custom resources go through NewCRDRESTOptionsGetter, with them too (since Kubernetes 1.26).
func storedBare(gr schema.GroupResource) bool {
	if gr.Group != "" {
		return false
	}
	switch gr.Resource {
	case "masterleases": // pkg/controlplane/instance.go, createLeaseReconciler
		return true
	case "peerserverleases": // pkg/controlplane/apiserver/peer.go, CreatePeerEndpointLeaseReconciler
		return true
	case "ranges": // of IPs and node ports: pkg/registry/core/rest/storage_core.go, newServiceIPAllocators
		return true
	case "": // what is no object at all: compact_rev_key, k8s.io/apiserver pkg/storage/etcd3/compact.go
		return true
	default:
		return false
	}
}

// storageResource is the resource by which the server chooses a transformer: the DefaultQualifiedResource of the
// registry that serves gr. It differs from gr where one place in etcd is served in two groups. The pairs are those of
// k8s.io/kubernetes pkg/kubeapiserver/default_storage_factory_builder.go, AddCohabitatingResources. (The validation of
// configurations refuses both groups on the left; without this a rule for "events" would miss events.k8s.io.)
func storageResource(gr schema.GroupResource) schema.GroupResource {
	group := gr.Group
	switch gr {
	case schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, // pkg/registry/core/event/storage: api.Resource("events")
		schema.GroupResource{Group: "extensions", Resource: "replicationcontrollers"}:
		group = ""
	case schema.GroupResource{Group: "extensions", Resource: "deployments"},
		schema.GroupResource{Group: "extensions", Resource: "daemonsets"},
		schema.GroupResource{Group: "extensions", Resource: "replicasets"}:
		group = "apps"
	case schema.GroupResource{Group: "extensions", Resource: "networkpolicies"},
		schema.GroupResource{Group: "extensions", Resource: "ingresses"}:
		group = "networking.k8s.io"
	case schema.GroupResource{Group: "extensions", Resource: "podsecuritypolicies"}:
		group = "policy"
	}
	return schema.GroupResource{Group: group, Resource: gr.Resource}
}
